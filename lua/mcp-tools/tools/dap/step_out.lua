--- Runs until the current function returns.

local control = require('mcp-tools.editor.dap.control')

return control.tool('stepOut', {
  name = 'dap_step_out',
  title = 'Step out',
  description = 'Runs the stopped program until its function returns, and tells where it stands: five lines, callers,'
    .. ' locals that changed, new output; or still_running, or the end with its exit code.',
  needs_approval = 'it lets the program under the debugger run until its function returns',
  preview = 'The stopped program returns from its function.',
})
