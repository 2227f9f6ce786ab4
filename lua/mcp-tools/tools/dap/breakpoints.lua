--- Lists all breakpoints, and whether they are bound.

local breakpoints = require('mcp-tools.editor.dap.breakpoints')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local result = require('mcp-tools.editor.result')
local sessions = require('mcp-tools.editor.dap.sessions')

return {
  name = 'dap_breakpoints',
  title = 'Breakpoints',
  description = "Lists all breakpoints, including the user's: file, line, type and conditions, and during a debug"
    .. ' session whether each is bound (verified), and to which line.',
  args = {
    limit = { type = 'integer', description = 'Maximum number of results', default = 100, minimum = 1, maximum = 1000 },
    offset = { type = 'integer', description = 'Number of results to skip', default = 0, minimum = 0 },
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
