--- Waits for the next stop and describes it.

local control = require('mcp-tools.editor.dap.control')
local sessions = require('mcp-tools.editor.dap.sessions')

return sessions.tool(sessions.any, {
  name = 'dap_wait_until_paused',
  title = 'Wait until the program pauses',
  description = 'Waits until the program stops or ends, and returns the stop as dap_continue does. Returns at once if'
    .. ' it has already stopped, and still_running after the timeout.',
  args = {
    timeout_ms = control.timeout(),
    check_interval_ms = { type = 'integer', description = 'Ignored: the stop itself ends the wait' },
  },
  annotations = { read_only = true },
  timeout = control.TOOL_TIMEOUT,
  run = function(ctx, entry, args)
    return control.wait(ctx, entry, args.timeout_ms)
  end,
})
