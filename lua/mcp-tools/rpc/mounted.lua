--- Definitions provided by the process behind a channel, such as the bridge for mounted servers. They are registered
--- until the channel closes.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local Registrations = require('mcp-tools.registry.registrations')
local errors = require('mcp-tools.errors')
local kinds = require('mcp-tools.registry.kinds')
local listing = require('mcp-tools.scope.listing')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local remote = require('mcp-tools.calls.remote')

local M = {}

---@class mcp-tools.Provider
---@field target mcp-tools.RemoteTarget
---@field held table<mcp-tools.Kind, mcp-tools.Registrations>

---@type table<integer, table<string, mcp-tools.Provider>> channel → name
local providers = {}

---@param channel integer
---@return mcp-tools.RemoteTarget
local function target_of(channel)
  return remote.target({
    send = function(_, event, ...)
      local ok, err = pcall(vim.rpcnotify, channel, event, ...)
      if not ok then
        log.debug('channel %d: %s could not be sent: %s', channel, event, err)
      end
    end,
  })
end

--- Returns a function that completes an argument in the process.
---@param provider mcp-tools.Provider
---@param name string of the provider
---@param kind string
---@param key string of the definition
---@param argument string
---@return fun(ctx: mcp-tools.Ctx, prefix: string, arguments: table)
local function completion(provider, name, kind, key, argument)
  local address = { provider = name, kind = kind, name = key }
  return function(ctx, prefix, arguments)
    local context = next(arguments) and arguments or nil
    remote.call(provider.target, ctx, address, { argument = { name = argument, value = prefix }, context = context })
  end
end

---@param provider mcp-tools.Provider
---@param name string of the provider
---@return fun(ctx: mcp-tools.Ctx)
local function reader(provider, name)
  return function(ctx)
    local address = { provider = name, kind = 'resource', name = ctx.call.name }
    remote.call(provider.target, ctx, address, vim.empty_dict(), ctx.call.max_result)
  end
end

--- Returns a function that watches a resource: the process gets `remote_watch` and calls `remote_updated`.
---@param provider mcp-tools.Provider
---@param name string of the provider
---@param def table
---@return (fun(changed: fun(), params: table, uri: string): fun())?
local function watcher(provider, name, def)
  return def.watch
      and function(_, _, uri)
        provider.target:send('remote_watch', name, uri)
        return function()
          provider.target:send('remote_unwatch', name, uri)
        end
      end
    or nil
end

--- Creates the functions of a definition, by kind: the handler, which passes calls to the channel, and completions.
---@type table<mcp-tools.Kind, fun(provider: mcp-tools.Provider, name: string, def: table): table>
local functions = {
  tools = function(provider, name, def)
    local address = { provider = name, kind = 'tool', name = def.name, structured = def.output_schema ~= nil or nil }
    return {
      execute = function(ctx, args)
        remote.call(provider.target, ctx, address, args, ctx.call.max_result)
      end,
    }
  end,
  resources = function(provider, name, def)
    return { read = reader(provider, name), watch = watcher(provider, name, def) }
  end,
  templates = function(provider, name, def)
    local complete = {}
    for _, variable in ipairs(def.complete or {}) do
      complete[variable] = completion(provider, name, 'completion of a template', def.uri_template, variable)
    end
    return { read = reader(provider, name), complete = complete, watch = watcher(provider, name, def) }
  end,
  prompts = function(provider, name, def)
    local address = { provider = name, kind = 'prompt', name = def.name }
    local args = {}
    for i, arg in ipairs(def.args or {}) do
      args[i] = vim.tbl_extend('force', arg, {
        complete = arg.complete and completion(provider, name, 'completion of a prompt', def.name, arg.name) or nil,
      })
    end
    return {
      args = args,
      get = function(ctx, given)
        local arguments = next(given) and given or vim.empty_dict()
        remote.call(provider.target, ctx, address, arguments, ctx.call.max_result)
      end,
    }
  end,
}

--- Registers the definitions of one kind; they replace those that the provider registered before.
---@param channel integer
---@param name string of the provider
---@param definitions table[] as for `register`, without functions: `complete` lists the completable variables of a
---  template, and is true for a completable argument of a prompt; `watch` is true if changes are reported
---@param kind? mcp-tools.Kind default: tools
---@param piece? mcp-tools.DefinitionPiece
---@return { refused: string[] } why definitions were refused
function M.provide(channel, name, definitions, kind, piece)
  kind = kinds.row(kind or 'tools').kind
  providers[channel] = providers[channel] or {}
  local provider = providers[channel][name] or { target = target_of(channel), held = {} }
  providers[channel][name] = provider
  local holder = provider.held[kind] or Registrations.new(kind, project.root)
  provider.held[kind] = holder
  local list = vim.tbl_map(function(def) -- `replace` refuses what is not a table
    return type(def) == 'table' and vim.tbl_extend('force', def, functions[kind](provider, name, def)) or def
  end, definitions)
  local refused = holder:replace(core.registry(), list, function()
    return { origin = 'mounted', name = name }
  end, piece)
  local registry, prefix = core.registry(), config.get().tool_prefix
  for _, def in ipairs(definitions) do
    local row, key = kinds.row_of(kind, def)
    local definition = type(key) == 'string' and registry:known(row.kind, key) or nil
    if definition then
      listing.encoded(row.kind, definition, prefix)
    end
  end
  return { refused = refused }
end

--- Removes the definitions of a provider and ends its calls.
---@param channel integer
---@param name string
function M.withdraw(channel, name)
  local provider = providers[channel] and providers[channel][name]
  if not provider then
    return
  end
  providers[channel][name] = nil
  if next(providers[channel]) == nil then
    providers[channel] = nil
  end
  for _, holder in pairs(provider.held) do
    holder:keep(core.registry())
  end
  remote.lost(provider.target, errors.new('execution_error', ('%s has ended while the tool ran'):format(name)))
end

--- Removes all providers of a closed channel.
---@param channel integer
function M.lost(channel)
  for name in pairs(providers[channel] or {}) do
    M.withdraw(channel, name)
  end
end

--- Returns whether there is any provider.
---@return boolean
function M.any()
  return next(providers) ~= nil
end

return M
