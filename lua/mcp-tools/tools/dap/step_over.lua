--- Runs to the next line, over calls.

local control = require('mcp-tools.editor.dap.control')

return control.tool('next', {
  name = 'dap_step_over',
  title = 'Step over',
  description = 'Runs the stopped program to the next line, over calls, and tells where it stands: five lines, callers,'
    .. ' locals that changed, new output; or still_running, or the end with its exit code.',
  needs_approval = 'it lets the program under the debugger take a step',
  preview = 'The stopped program goes on to the next line.',
})
