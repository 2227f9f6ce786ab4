--- Pauses a running program.

local control = require('mcp-tools.editor.dap.control')
local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')

return sessions.tool(sessions.active, {
  name = 'dap_pause',
  title = 'Pause the program',
  description = 'Pauses a running program and returns the stop as dap_continue does. Returns at once if it has already'
    .. ' stopped.',
  args = {
    thread_id = { type = 'integer', description = 'Default: the first thread' },
    wait_timeout_ms = control.timeout(5000),
  },
  annotations = { read_only = false, destructive = false },
  timeout = control.TOOL_TIMEOUT,
  needs_approval = 'it stops the program under the debugger',
  preview = 'The program is paused where it is.',
  run = function(ctx, entry, args)
    if sessions.state(entry) ~= 'stopped' then
      local ok, fault = control.pause(ctx, entry, args.thread_id)
      if not ok then
        return nil, fault
      end
      return control.wait(ctx, entry, args.wait_timeout_ms)
    end
    return stop.describe(ctx, entry)
  end,
})
