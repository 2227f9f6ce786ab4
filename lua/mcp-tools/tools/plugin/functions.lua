--- Lists the public functions of a plugin's module.

local functions = require('mcp-tools.editor.plugins.functions')
local result = require('mcp-tools.editor.result')

return {
  name = 'plugin_functions',
  title = 'Functions of a plugin',
  description = "Lists the public functions of a plugin's loaded Lua module: name, parameters, file and line of the"
    .. ' definition. Private ones (_name) are left out. Runs nothing.',
  args = {
    module = functions.MODULE,
    limit = { type = 'integer', description = 'Maximum number of results', default = 100, minimum = 1, maximum = 2000 },
    offset = { type = 'integer', description = 'Number of results to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  execute = function(ctx, args)
    local list, err = functions.list(args.module)
    if not list then
      return ctx(nil, err)
    end
    local items, about = result.page(list, args)
    about.functions = items
    ctx(result.utf8(about))
  end,
}
