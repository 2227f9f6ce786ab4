--- Tools that a process behind a channel provides, such as the bridge for mounted servers: here as long as it is.
---
--- Receives: definitions by `provide`, and word that a channel is gone.
--- Sends: them to the registry, with handlers that pass calls to the channel; `remote_call`, `remote_cancel` and
--- `remote_answer` to the process.
--- Does not know about: what a tool does, how the process answers (call/remote.lua).

local core = require('mcp-tools.core')
local Registrations = require('mcp-tools.registry.registrations')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local project = require('mcp-tools.files.project')
local remote = require('mcp-tools.call.remote')

local M = {}

---@class mcp-tools.Provider
---@field target mcp-tools.RemoteTarget
---@field tools mcp-tools.Registrations

---@type table<integer, table<string, mcp-tools.Provider>> channel → name
local providers = {}

---@param channel integer
---@return mcp-tools.RemoteTarget
local function target_of(channel)
  return remote.target({
    send = function(_, event, ...)
      local ok, err = pcall(vim.rpcnotify, channel, event, ...)
      if not ok then
        log.debug('channel %d: %s did not go out: %s', channel, event, err)
      end
    end,
  })
end

--- A definition whose handler passes calls to the channel.
---@param provider mcp-tools.Provider
---@param name string of the provider
---@param def table
---@return table
local function with_handler(provider, name, def)
  return vim.tbl_extend('force', def, {
    execute = function(ctx, args)
      remote.call(provider.target, ctx, { provider = name, name = def.name }, args, ctx.call.max_result)
    end,
  })
end

--- Offers tools, in place of those that the provider had before.
---@param channel integer
---@param name string of the provider
---@param definitions table[] as `register` takes them, without a handler
---@return { refused: string[] } faults of the definitions that were not taken in
function M.provide(channel, name, definitions)
  providers[channel] = providers[channel] or {}
  local provider = providers[channel][name]
    or { target = target_of(channel), tools = Registrations.new('tools', project.root) }
  providers[channel][name] = provider
  local list = vim.tbl_map(function(def)
    return type(def) == 'table' and with_handler(provider, name, def) or def -- what is none is refused as such
  end, definitions)
  local refused = provider.tools:replace(core.registry(), list, function()
    return { origin = 'mounted', name = name }
  end)
  return { refused = refused }
end

--- Takes a provider's tools out; its calls end.
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
  provider.tools:keep(core.registry())
  remote.lost(provider.target, errors.new('execution_error', ('%s has ended while the tool ran'):format(name)))
end

--- The channel is gone, and its tools with it.
---@param channel integer
function M.lost(channel)
  for name in pairs(providers[channel] or {}) do
    M.withdraw(channel, name)
  end
end

--- Is anything provided?
---@return boolean
function M.any()
  return next(providers) ~= nil
end

return M
