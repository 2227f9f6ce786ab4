--- Waits for the next stop and describes it.

local control = require('mcp-tools.editor.dap.control')
local sessions = require('mcp-tools.editor.dap.sessions')

return sessions.tool(sessions.any, {
  name = 'dap_wait_until_paused',
  title = 'Wait until the program pauses',
  description = 'Waits until the program stops or ends and tells it, as dap_continue does; one that has stopped already'
    .. ' is told at once. When the time runs out the answer is still_running.',
  args = {
    timeout_ms = {
      type = 'integer',
      description = 'Longest wait in ms',
      default = control.DEFAULT_WAIT,
      minimum = 0,
      maximum = control.MAX_WAIT,
    },
    check_interval_ms = { type = 'integer', description = 'Not needed any more: the stop itself ends the wait' },
  },
  annotations = { read_only = true },
  timeout = control.TOOL_TIMEOUT,
  run = function(ctx, entry, args)
    return control.wait(ctx, entry, args.timeout_ms)
  end,
})
