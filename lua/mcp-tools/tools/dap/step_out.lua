--- Runs until the current function returns.

local control = require('mcp-tools.editor.dap.control')

return control.tool('stepOut', {
  name = 'dap_step_out',
  title = 'Step out',
  description = 'Runs until the current function returns, and returns the stop: five lines of code, callers, changed'
    .. ' locals, new output; or still_running; or the end with the exit code.',
  needs_approval = 'it lets the program under the debugger run until its function returns',
  preview = 'The stopped program returns from its function.',
})
