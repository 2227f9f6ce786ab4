--- Continues a stopped program to its next stop.

local control = require('mcp-tools.editor.dap.control')
local sessions = require('mcp-tools.editor.dap.sessions')

return {
  name = 'dap_continue',
  title = 'Continue the program',
  description = 'Lets the stopped program run on, and tells the next stop: place, five lines around it, callers,'
    .. ' locals that changed, new output; or still_running, or the end with its exit code.',
  args = control.WAIT_ARGS,
  annotations = { read_only = false, destructive = false, open_world = true },
  timeout = control.TOOL_TIMEOUT,
  needs_approval = 'it lets the program under the debugger run on',
  preview = sessions.preview(sessions.stopped, 'The stopped program goes on.'),
  run = control.tool('continue'),
}
