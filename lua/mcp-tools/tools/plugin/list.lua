--- Lists plugins or loaded Lua modules.

local result = require('mcp-tools.editor.result')
local plugins = require('mcp-tools.editor.plugins')

---@param list any[]
---@param contains string?
---@param text_of fun(item: any): string
---@return any[]
local function filtered(list, contains, text_of)
  local wanted = contains and contains:lower()
  return wanted
      and vim.tbl_filter(function(item)
        return text_of(item):lower():find(wanted, 1, true) ~= nil
      end, list)
    or list
end

return {
  name = 'plugin_list',
  title = 'Plugins',
  description = 'Lists the plugins of this editor with manager (lazy.nvim, vim.pack, packages, runtimepath), version,'
    .. ' and whether each is loaded; with what = "modules", the names of loaded Lua modules.',
  args = {
    what = { type = 'string', enum = { 'plugins', 'modules' }, default = 'plugins', description = 'What to list' },
    contains = { type = 'string', description = 'Only names with this text; case-insensitive', maxLength = 200 },
    loaded_only = { type = 'boolean', default = false, description = 'Only loaded plugins' },
    limit = { type = 'integer', description = 'Maximum number of results', default = 100, minimum = 1, maximum = 2000 },
    offset = { type = 'integer', description = 'Number of results to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  execute = function(ctx, args)
    local items, about
    if args.what == 'modules' then
      items, about = result.page(
        filtered(plugins.modules(), args.contains, function(name)
          return name
        end),
        args
      )
    else
      local list = vim.tbl_filter(function(plugin)
        return plugin.loaded or not args.loaded_only
      end, plugins.all())
      items, about = result.page(
        filtered(list, args.contains, function(plugin)
          return plugin.name
        end),
        args
      )
      items = vim.tbl_map(function(plugin)
        return {
          name = plugin.name,
          manager = plugin.manager,
          loaded = plugin.loaded,
          version = plugin.version,
        }
      end, items)
    end
    about[args.what] = items
    ctx(result.utf8(about))
  end,
}
