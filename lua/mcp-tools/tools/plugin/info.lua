--- Describes a plugin or one of its modules, or returns its readme.

local access = require('mcp-tools.privacy.access')
local arguments = require('mcp-tools.editor.arguments')
local errors = require('mcp-tools.errors')
local functions = require('mcp-tools.editor.plugins.functions')
local plugins = require('mcp-tools.editor.plugins')
local result = require('mcp-tools.editor.result')
local time_slice = require('mcp-tools.util.time_slice')

---@param ctx mcp-tools.Ctx inside a coroutine
---@param plugin mcp-tools.Plugin
---@return string[] lines
---@return string head
local function readme(ctx, plugin)
  local name = plugins.readme(plugin.path)
  if not name then
    error(errors.new('not_found', ('name: %s has no readme'):format(plugin.name)), 0)
  end
  local text = errors.unwrap(plugins.text(ctx, plugin.path .. '/' .. name))
  return vim.split(text, '\n', { plain = true }), name
end

---@param ctx mcp-tools.Ctx inside a coroutine
---@param plugin mcp-tools.Plugin
---@return string[] modules
---@return string head
local function modules(ctx, plugin)
  local names, cut = plugins.modules_in(plugin.path, time_slice.of(ctx))
  local facts = {
    ('%s (%s, %s)'):format(plugin.name, plugin.manager, plugin.loaded and 'loaded' or 'not loaded'),
    'directory: ' .. plugin.path,
  }
  local function add(name, value)
    table.insert(facts, value and ('%s: %s'):format(name, value))
  end
  add('url', plugin.url and access.name(plugin.url))
  add('version', plugin.version)
  add('revision', plugin.revision)
  add('help', table.concat(plugins.help(plugin.path), ', '))
  add('readme', plugins.readme(plugin.path))
  add('modules', #names .. (cut and ' or more' or ''))
  return vim.tbl_map(function(name)
    return package.loaded[name] ~= nil and name .. ' (loaded)' or name
  end, names),
    table.concat(facts, '\n')
end

return {
  name = 'plugin_info',
  title = 'A plugin',
  description = 'Describes a plugin: directory, version, help files, Lua modules; or returns its readme. With `module`'
    .. ' lists the public functions of a loaded module.',
  search_hint = 'api of a plugin, exports of a module, README',
  args = {
    name = { type = 'string', description = 'Plugin', minLength = 1, maxLength = 200 },
    readme = { type = 'boolean', description = 'Return the readme', default = false },
    module = functions.MODULE,
    limit = arguments.hidden(arguments.limit('rows', 150, 5000)),
    offset = { type = 'integer', description = 'Number of rows to skip', default = 0, minimum = 0, hidden = true },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  run = function(ctx, args)
    if (args.name == nil) == (args.module == nil) then
      return nil, errors.new('validation_error', 'give exactly one of name and module')
    end
    local rows, head
    if args.module then
      rows = errors.unwrap(functions.list(args.module))
    else
      local plugin = errors.unwrap(plugins.find(args.name))
      rows, head = (args.readme and readme or modules)(ctx, plugin)
    end
    local items, about = result.page(rows, args)
    return result.utf8({ head = head or result.count(#rows, 'function'), rows = items, total = about.total })
  end,
  render = function(value, args)
    local head = result.with_range(value.head, args, value.total)
    return result.longest({ { text = vim.list_extend({ head }, value.rows) } }, 'use limit and offset')
  end,
}
