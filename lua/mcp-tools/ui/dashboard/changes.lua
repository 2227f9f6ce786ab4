--- Section: what agents have changed in this editor, in one row.

local changes = require('mcp-tools.editor.edit.history')

---@return mcp-tools.Change[] newest first, without those that were taken back
local function standing()
  return vim.tbl_filter(function(change)
    return not change.reverted
  end, changes.list())
end

---@type mcp-tools.DashboardSection
return {
  title = 'Changes of agents',
  order = 45,
  hidden = function()
    return #standing() == 0
  end,
  rows = function(rows)
    local list, files = standing(), {}
    for _, change in ipairs(list) do
      files[change.path] = true
    end
    local count, places = #list, vim.tbl_count(files)
    local text = ('%d edit%s in %d file%s'):format(count, count == 1 and '' or 's', places, places == 1 and '' or 's')
    rows:table({
      {
        cells = { text, { list[1].tool, 'Name' }, vim.fs.basename(list[1].path), { '<CR> lists them', 'Dim' } },
        item = { kind = 'changes', id = 'changes' },
      },
    })
  end,
  details = {
    changes = function(parts)
      parts.close()
      parts.run('changes')
    end,
  },
}
