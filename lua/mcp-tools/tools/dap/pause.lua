--- Pauses a running program.

local control = require('mcp-tools.editor.dap.control')
local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')

return sessions.tool(sessions.active, {
  name = 'dap_pause',
  title = 'Pause the program',
  description = 'Stops a running program where it is, and tells the stop as dap_continue does. One that has stopped'
    .. ' already is told at once.',
  args = {
    thread_id = { type = 'integer', description = 'Default: the first thread' },
    wait_timeout_ms = {
      type = 'integer',
      description = 'Longest wait in ms',
      default = 5000,
      minimum = 0,
      maximum = control.MAX_WAIT,
    },
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
