--- Runs to the next line, over calls.

local control = require('mcp-tools.editor.dap.control')
local sessions = require('mcp-tools.editor.dap.sessions')

return {
  name = 'dap_step_over',
  title = 'Step over',
  description = 'Runs the stopped program to the next line, over calls, and tells where it stands: five lines, callers,'
    .. ' locals that changed, new output; or still_running, or the end with its exit code.',
  args = control.WAIT_ARGS,
  annotations = { read_only = false, destructive = false, open_world = true },
  timeout = control.TOOL_TIMEOUT,
  needs_approval = 'it lets the program under the debugger take a step',
  preview = sessions.preview(sessions.stopped, 'The stopped program goes on to the next line.'),
  run = control.tool('next'),
}
