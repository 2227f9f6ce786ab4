--- Ends the program of a debug session.

local control = require('mcp-tools.editor.dap.control')
local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')

return sessions.tool(sessions.active, {
  name = 'dap_terminate',
  title = 'Terminate the program',
  description = 'Ends the debugged program and its session. Returns the last output; dap_program_output keeps it.',
  annotations = { read_only = false, destructive = true, idempotent = true },
  needs_approval = 'it ends the program under the debugger',
  preview = 'The program and the debug session end.',
  run = function(ctx, entry)
    local ok, fault = control.terminate(ctx, entry)
    if not ok then
      return nil, fault
    end
    return vim.tbl_extend('force', { success = true }, stop.describe(ctx, entry))
  end,
})
