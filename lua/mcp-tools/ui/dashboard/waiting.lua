--- Section: what waits for the person.

local approvals = require('mcp-tools.ui.approval')
local reviews = require('mcp-tools.editor.review')

---@return { kind: string, count: integer, text: string, command: string }[]
local function waiting()
  local interview = package.loaded['mcp-tools.ui.interview'] -- start-up cost: nobody was asked before it is loaded
  local list = {
    { kind = 'approval', count = approvals.count(), text = 'question%s for approval', command = 'approve look' },
    { kind = 'interview', count = interview and interview.count() or 0, text = 'interview%s', command = 'answer' },
    { kind = 'review', count = reviews.count(), text = 'review%s', command = 'review' },
  }
  return vim.tbl_filter(function(each)
    return each.count > 0
  end, list)
end

---@type mcp-tools.DashboardSection
return {
  title = 'Waiting for you',
  order = 20,
  hidden = function()
    return #waiting() == 0
  end,
  rows = function(rows)
    local list = {}
    for _, each in ipairs(waiting()) do
      local text = ('%d %s'):format(each.count, each.text:format(each.count == 1 and '' or 's'))
      table.insert(list, {
        cells = { { '!', 'Warn' }, { text, 'Warn' }, { '<CR> goes there', 'Dim' } },
        item = { kind = 'waiting', id = 'waiting ' .. each.kind, value = each.command },
      })
    end
    rows:table(list)
  end,
  details = {
    waiting = function(parts, item)
      parts.close() -- it would lie on what is asked
      parts.run(item.value)
    end,
  },
}
