--- Describes a plugin.

local access = require('mcp-tools.privacy.access')
local plugins = require('mcp-tools.editor.plugins')
local result = require('mcp-tools.editor.result')
local time_slice = require('mcp-tools.util.time_slice')

return {
  name = 'plugin_info',
  title = 'A plugin',
  description = 'Describes a plugin: directory, version, Lua modules, help files, readme.',
  args = {
    name = plugins.NAME,
    limit = {
      type = 'integer',
      description = 'Maximum number of modules',
      default = 100,
      minimum = 1,
      maximum = 5000,
      hidden = true,
    },
    offset = { type = 'integer', description = 'Number of modules to skip', default = 0, minimum = 0, hidden = true },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  run = function(ctx, args)
    local plugin, err = plugins.find(args.name)
    if not plugin then
      return nil, err
    end
    local modules, cut = plugins.modules_in(plugin.path, time_slice.of(ctx))
    local items, about = result.page(modules, args)
    local loaded = vim.tbl_filter(function(name)
      return package.loaded[name] ~= nil
    end, items)
    plugin.url = plugin.url and access.name(plugin.url)
    return result.utf8(vim.tbl_extend('error', plugin, {
      modules = items,
      modules_total = about.total,
      modules_cut = cut or nil,
      next_offset = about.next_offset,
      loaded_modules = loaded,
      help = plugins.help(plugin.path),
      readme = plugins.readme(plugin.path),
    }))
  end,
}
