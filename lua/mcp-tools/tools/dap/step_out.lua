--- Runs until the current function returns.

local control = require('mcp-tools.editor.dap.control')
local sessions = require('mcp-tools.editor.dap.sessions')

return {
  name = 'dap_step_out',
  title = 'Step out',
  description = 'Runs the stopped program until its function returns, and tells where it stands: five lines, callers,'
    .. ' locals that changed, new output; or still_running, or the end with its exit code.',
  args = control.WAIT_ARGS,
  annotations = { read_only = false, destructive = false, open_world = true },
  timeout = control.TOOL_TIMEOUT,
  needs_approval = 'it lets the program under the debugger run until its function returns',
  preview = sessions.preview(sessions.stopped, 'The stopped program returns from its function.'),
  run = control.tool('stepOut'),
}
