--- Lists the public functions of a plugin's module.

local functions = require('mcp-tools.editor.plugins.functions')
local result = require('mcp-tools.editor.result')

return {
  name = 'plugin_functions',
  title = 'Functions of a plugin',
  description = "Lists the public functions of a plugin's loaded Lua module, with parameters and place of definition.",
  search_hint = 'api of a plugin, exports of a module',
  args = {
    module = functions.MODULE,
    limit = {
      type = 'integer',
      description = 'Maximum number of results',
      default = 100,
      minimum = 1,
      maximum = 2000,
      hidden = true,
    },
    offset = { type = 'integer', description = 'Number of results to skip', default = 0, minimum = 0, hidden = true },
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
  render = function(value, args)
    local rows = { result.with_range(result.count(value.total, 'function'), args, value.total) }
    for _, one in ipairs(value.functions) do
      local place = one.file and (' (%s:%d)'):format(one.file, one.line) or ''
      table.insert(rows, ('%s(%s)%s'):format(one.name, one.parameters, place))
    end
    return table.concat(rows, '\n')
  end,
}
