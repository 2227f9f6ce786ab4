--- Runs to the next line, into calls.

local control = require('mcp-tools.editor.dap.control')

return control.tool('stepIn', {
  name = 'dap_step_into',
  title = 'Step into',
  description = 'Runs the stopped program into the call of its line, and tells where it stands: five lines, callers,'
    .. ' locals that changed, new output; or still_running, or the end with its exit code.',
  needs_approval = 'it lets the program under the debugger take a step',
  preview = 'The stopped program goes into the call of its line.',
})
