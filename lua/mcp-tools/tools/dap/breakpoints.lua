--- Lists all breakpoints, and whether they are bound.

local breakpoints = require('mcp-tools.editor.dap.breakpoints')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local result = require('mcp-tools.editor.result')
local sessions = require('mcp-tools.editor.dap.sessions')

return {
  name = 'dap_breakpoints',
  title = 'Breakpoints',
  description = 'Lists the breakpoints, those of the person too: file, line, type, conditions, and, while a program is'
    .. ' debugged, whether each is bound (verified) and in which line.',
  args = {
    limit = { type = 'integer', description = 'Maximum number of results', default = 100, minimum = 1, maximum = 1000 },
    offset = { type = 'integer', description = 'Number of breakpoints to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    if nvim_dap.loaded() then
      sessions.attach()
    end
    local page, answer = result.page(breakpoints.list(ctx), args)
    answer.breakpoints = page
    return answer
  end,
}
