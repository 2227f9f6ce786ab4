--- Lists variables of a stopped program.

local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')
local variables = require('mcp-tools.editor.dap.variables')

return sessions.tool(sessions.stopped, {
  name = 'dap_variables',
  title = 'Variables',
  description = 'Lists variables of a scope or inside another variable; without a reference, the locals. names_only'
    .. ' leaves out values, names selects some. Values are cut at max_chars; secrets are withheld.',
  args = {
    variables_reference = { type = 'integer', description = 'From dap_scopes or another variable', minimum = 1 },
    frame_id = { type = 'integer', description = 'Locals of this frame; default: the stopped frame' },
    names = { type = 'array', items = { type = 'string' }, description = 'Names to return' },
    names_only = { type = 'boolean', description = 'Leave out values', default = false },
    filter = { type = 'string', enum = { 'indexed', 'named' }, description = 'Only elements, or only fields' },
    start = { type = 'integer', description = 'Number of variables to skip', default = 0, minimum = 0 },
    count = {
      type = 'integer',
      description = 'Number of locals',
      default = variables.MAX_COUNT,
      minimum = 1,
      maximum = 5000,
    },
    max_chars = { type = 'integer', description = 'Length of each value', default = 200, minimum = 1, maximum = 20000 },
    timeout_ms = { type = 'integer', description = 'Timeout in ms', default = 5000, minimum = 1, maximum = 60000 },
  },
  annotations = { read_only = true },
  run = function(ctx, entry, args)
    if not args.variables_reference then
      local fault
      args.frame_id, fault = stop.frame_id(ctx, entry, args.frame_id)
      if not args.frame_id then
        return nil, fault
      end
    end
    return variables.page(ctx, entry, args)
  end,
})
