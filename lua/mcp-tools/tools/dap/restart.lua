--- Restarts the program of a debug session.

local control = require('mcp-tools.editor.dap.control')
local launch = require('mcp-tools.editor.dap.launch')
local sessions = require('mcp-tools.editor.dap.sessions')

return sessions.tool(sessions.any, {
  name = 'dap_restart',
  title = 'Restart the program',
  description = 'Ends the program of the debug session if it still runs, and starts it again with the same'
    .. ' configuration. Returns the first stop as dap_run does.',
  args = control.WAIT_ARGS,
  annotations = { read_only = false, destructive = true, open_world = true },
  timeout = control.TOOL_TIMEOUT,
  needs_approval = 'it ends the program under the debugger and runs it again',
  preview = function(_, entry)
    return vim.inspect(launch.config_of(entry))
  end,
  run = launch.restart,
})
