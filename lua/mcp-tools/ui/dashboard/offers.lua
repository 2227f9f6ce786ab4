--- Section: resources and prompts that are offered.

local kinds = require('mcp-tools.registry.kinds')

---@type mcp-tools.DashboardSection
return {
  title = 'Resources and prompts',
  order = 80,
  folded = true,
  note = function(parts)
    local notes = {}
    for _, row in ipairs(kinds.rows) do
      if not row.grouped then
        table.insert(notes, ('%d %s'):format(#parts.registry:list(row.kind), row.heading))
      end
    end
    return table.concat(notes, ', ')
  end,
  rows = function(rows, parts)
    local list = {}
    for _, row in ipairs(kinds.rows) do
      for _, entry in ipairs(row.grouped and {} or parts.registry:list(row.kind)) do
        local title = tostring(entry.title or entry.description or entry.name):match('[^\n]*')
        table.insert(list, {
          cells = { { row.what, 'Dim' }, { tostring(entry.key), 'Name' }, { title, 'Dim' } },
          item = { kind = 'offer', id = ('%s %s'):format(row.kind, entry.key) },
        })
      end
    end
    rows:table(list)
  end,
}
