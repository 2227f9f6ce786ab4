--- Lists the scopes of a stack frame.

local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')
local variables = require('mcp-tools.editor.dap.variables')

return sessions.tool(sessions.stopped, {
  name = 'dap_scopes',
  title = 'Scopes of a stack frame',
  description = 'Lists the scopes of a frame, such as Locals and Globals: name, variables_reference for dap_variables,'
    .. ' and whether it is expensive to read.',
  args = {
    frame_id = { type = 'integer', description = 'Frame id from dap_stacktrace; default: the stopped frame' },
    timeout_ms = { type = 'integer', description = 'Timeout in ms', default = 5000, minimum = 1, maximum = 60000 },
  },
  annotations = { read_only = true },
  run = function(ctx, entry, args)
    local id, fault = stop.frame_id(ctx, entry, args.frame_id)
    if not id then
      return nil, fault
    end
    local scopes, refused = variables.scopes(ctx, entry, id, args.timeout_ms)
    if not scopes then
      return nil, refused
    end
    return {
      scopes = vim.tbl_map(function(scope)
        return {
          name = scope.name,
          variables_reference = scope.variablesReference,
          expensive = scope.expensive or nil,
          hint = scope.presentationHint,
        }
      end, scopes),
    }
  end,
})
