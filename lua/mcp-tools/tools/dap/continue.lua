--- Continues a stopped program to its next stop.

local control = require('mcp-tools.editor.dap.control')

return control.tool('continue', {
  name = 'dap_continue',
  title = 'Continue the program',
  description = 'Lets the stopped program run on, and tells the next stop: place, five lines around it, callers,'
    .. ' locals that changed, new output; or still_running, or the end with its exit code.',
  needs_approval = 'it lets the program under the debugger run on',
  preview = 'The stopped program goes on.',
})
