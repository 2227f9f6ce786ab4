--- Continues a stopped program to its next stop.

local control = require('mcp-tools.editor.dap.control')

return control.tool('continue', {
  name = 'dap_continue',
  title = 'Continue the program',
  description = 'Continues the stopped program and returns the next stop: place, five lines of code, callers, changed'
    .. ' locals, new output; or still_running; or the end with the exit code.',
  needs_approval = 'it lets the program under the debugger run on',
  preview = 'The stopped program goes on.',
})
