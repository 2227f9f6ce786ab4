--- Lists variables of a stopped program.

local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')
local variables = require('mcp-tools.editor.dap.variables')

return sessions.tool(sessions.stopped, {
  name = 'dap_variables',
  title = 'Variables',
  description = 'Variables of a scope or of another variable; without a reference the locals. Names alone (names_only),'
    .. ' or just the given names. Values are cut at max_chars, secrets are withheld.',
  args = {
    variables_reference = { type = 'integer', description = 'Of dap_scopes or a variable', minimum = 1 },
    frame_id = { type = 'integer', description = 'Locals of this frame; default: where it stands' },
    names = { type = 'array', items = { type = 'string' }, description = 'Only these' },
    names_only = { type = 'boolean', description = 'Without values', default = false },
    filter = { type = 'string', enum = { 'indexed', 'named' }, description = 'Only elements, or only fields' },
    start = { type = 'integer', description = 'Number of variables to skip', default = 0, minimum = 0 },
    count = {
      type = 'integer',
      description = 'Maximum number of variables',
      default = variables.MAX_COUNT,
      minimum = 1,
      maximum = 5000,
    },
    max_chars = { type = 'integer', description = 'Of each value', default = 200, minimum = 1, maximum = 20000 },
    timeout_ms = { type = 'integer', description = 'ms', default = 5000, minimum = 1, maximum = 60000 },
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
