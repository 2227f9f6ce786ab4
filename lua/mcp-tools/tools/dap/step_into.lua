--- Runs to the next line, into calls.

local control = require('mcp-tools.editor.dap.control')
local sessions = require('mcp-tools.editor.dap.sessions')

return {
  name = 'dap_step_into',
  title = 'Step into',
  description = 'Runs the stopped program into the call of its line, and tells where it stands: five lines, callers,'
    .. ' locals that changed, new output; or still_running, or the end with its exit code.',
  args = control.WAIT_ARGS,
  annotations = { read_only = false, destructive = false, open_world = true },
  timeout = control.TOOL_TIMEOUT,
  needs_approval = 'it lets the program under the debugger take a step',
  preview = sessions.preview(sessions.stopped, 'The stopped program goes into the call of its line.'),
  run = control.tool('stepIn'),
}
