--- Disconnects from a debug session, with or without ending its program.

local control = require('mcp-tools.editor.dap.control')
local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')

return sessions.tool(sessions.active, {
  name = 'dap_disconnect',
  title = 'Disconnect the debugger',
  description = 'Disconnects the debugger. The program ends too, unless terminate_debuggee is false: then it continues'
    .. ' without the debugger.',
  args = { terminate_debuggee = { type = 'boolean', description = 'End the program, too', default = true } },
  annotations = { read_only = false, destructive = true, idempotent = true },
  needs_approval = function(args)
    return args.terminate_debuggee and 'it ends the program under the debugger'
      or 'it lets the program go on without the debugger'
  end,
  preview = function(args)
    return args.terminate_debuggee and 'The session ends, and its program.' or 'The session ends; its program goes on.'
  end,
  run = function(ctx, entry, args)
    local ok, fault = control.disconnect(ctx, sessions.root(entry), args.terminate_debuggee)
    if not ok then
      return nil, fault
    end
    return vim.tbl_extend('force', { success = true }, stop.describe(ctx, entry))
  end,
})
