--- Runs a stopped program to a line.

local breakpoints = require('mcp-tools.editor.dap.breakpoints')
local control = require('mcp-tools.editor.dap.control')
local sessions = require('mcp-tools.editor.dap.sessions')

return sessions.tool(sessions.stopped, {
  name = 'dap_run_to',
  title = 'Run to a line',
  description = 'Runs the stopped program to a line and returns the stop as dap_continue does. Other breakpoints stay'
    .. ' active; reached says whether that line was reached. Leaves no breakpoint.',
  args = vim.tbl_extend('error', {
    line = { type = 'integer', description = '1-based line number', required = true, minimum = 1 },
  }, breakpoints.FILE_ARGS, control.WAIT_ARGS),
  annotations = { read_only = false, destructive = false, open_world = true },
  timeout = control.TOOL_TIMEOUT,
  needs_approval = 'it lets the program under the debugger run on',
  preview = function(args)
    local err = breakpoints.refusal(args)
    return not err and ('The stopped program runs to line %d.'):format(args.line) or nil, err
  end,
  run = breakpoints.run_to,
})
