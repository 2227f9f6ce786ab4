--- Section: the last calls, how they ended, and how long those of the same tool have taken.

local format = require('mcp-tools.ui.dashboard._format')

local SHOWN = 6

local SIGNS = {
  done = { '✓', 'Good' },
  failed = { '✗', 'Bad' },
  timed_out = { '✗', 'Bad' },
  cancelled = { '−', 'Warn' },
}

---@type mcp-tools.DashboardSection
return {
  title = 'Last calls',
  order = 40,
  note = function(parts)
    return #parts.history.list(1) == 0 and 'none yet' or nil
  end,
  rows = function(rows, parts)
    local list, now = {}, vim.uv.hrtime()
    for _, call in ipairs(parts.history.list(SHOWN)) do
      local ended = call.state == 'done' and '' or (call.code or call.state):gsub('_', ' ')
      table.insert(list, {
        cells = {
          SIGNS[call.state],
          { call.name, 'Name' },
          { format.ms(call.ms), 'Number' },
          { format.sparkline(parts.history.times(call.name)), 'Busy' },
          { format.age(now - call.ended_at) .. ' ago', 'Dim' },
          { call.client, 'Dim' },
          { ended, 'Bad' },
        },
        item = { kind = 'past', id = 'past ' .. call.id, value = call },
      })
    end
    rows:table(list, { right = { [3] = true, [5] = true }, least = { [3] = 6, [5] = 8 }, gives = 6 })
  end,
  details = {
    past = function(parts)
      parts.close()
      parts.run('audit')
    end,
  },
}
