--- Runs to the next line, into calls.

local control = require('mcp-tools.editor.dap.control')

return control.tool('stepIn', {
  name = 'dap_step_into',
  title = 'Step into',
  description = 'Steps into the call in the current line and returns the stop: five lines of code, callers, changed'
    .. ' locals, new output; or still_running; or the end with the exit code.',
  needs_approval = 'it lets the program under the debugger take a step',
  preview = 'The stopped program goes into the call of its line.',
})
