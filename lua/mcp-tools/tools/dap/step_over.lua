--- Runs to the next line, over calls.

local control = require('mcp-tools.editor.dap.control')

return control.tool('next', {
  name = 'dap_step_over',
  title = 'Step over',
  description = 'Steps to the next line, over calls, and returns the stop: five lines of code, callers, changed locals,'
    .. ' new output; or still_running; or the end with the exit code.',
  needs_approval = 'it lets the program under the debugger take a step',
  preview = 'The stopped program goes on to the next line.',
})
