--- Section: the last lines of the log, as this editor has written them.

local log = require('mcp-tools.log')

local SHOWN = 8
local COLOURS = { ERROR = 'Bad', WARN = 'Warn', INFO = 'Busy', DEBUG = 'Dim' }

---@type mcp-tools.DashboardSection
return {
  title = 'Log',
  order = 100,
  folded = true,
  note = function()
    local bad = vim.tbl_filter(function(line)
      return line:find('^%S+ ERROR ') or line:find('^%S+ WARN ')
    end, log.lines())
    return #bad > 0 and ('%d warnings and errors of this editor; L shows all'):format(#bad) or 'L shows all of it'
  end,
  rows = function(rows)
    local list = {}
    for _, line in ipairs(log.lines(SHOWN)) do
      local time, level, text = line:match('^%d+%-%d+%-%d+T(%S-)%.%d+ (%u+) +%[%d+%] ([^\n]*)')
      if time then
        table.insert(list, { cells = { { time, 'Dim' }, { level, COLOURS[level] }, text } })
      end
    end
    rows:table(list)
  end,
  keys = {
    {
      lhs = 'L',
      description = 'show the log',
      run = function(parts)
        parts.close()
        parts.run('log')
      end,
    },
  },
}
