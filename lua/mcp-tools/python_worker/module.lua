--- One module of Python tools: its definitions, and which of them are registered.

local Registrations = require('mcp-tools.registry.registrations')
local cache = require('mcp-tools.python_worker.cache')
local command = require('mcp-tools.python_worker.command')
local worker = require('mcp-tools.python_worker.worker')
local log = require('mcp-tools.log')

local M = {}

---@class mcp-tools.python_worker.Module
---@field source mcp-tools.python_worker.Source
---@field known mcp-tools.python_worker.Known?
---@field from_disk boolean `known` was read by an earlier Neovim process
---@field failed boolean the last attempt to read it failed; its tools are from before
---@field registered boolean the registry has the tools of `known`
---@field tools mcp-tools.Registrations
---@field refused string[] why the registry refused some definitions
local Module = {}
Module.__index = Module

---@param known? mcp-tools.python_worker.Known from the cache
---@return mcp-tools.python_worker.Module
function M.new(known)
  return setmetatable({
    known = known,
    from_disk = known ~= nil,
    failed = false,
    registered = false,
    tools = Registrations.new('tools', command.project),
    refused = {},
  }, Module)
end

---@param source mcp-tools.python_worker.Source
---@param name string
---@return fun(ctx: mcp-tools.Ctx, args: table)
local function handler(source, name)
  local location = { path = source.path, module = source.module, sha256 = source.sha256 }
  local tool = { key = source.key, name = name, source = location }
  return function(ctx, args)
    -- The schema decides whether an empty table is an object or a list.
    worker.call(ctx, tool, ctx.call.definition.check:shape(args))
  end
end

--- Registers the known tools.
---@param registry mcp-tools.Registry
function Module:register(registry)
  local source = self.source
  local list = vim.tbl_map(function(def)
    return vim.tbl_extend('error', def, { execute = handler(source, def.name) })
  end, self.known.tools)
  self.registered = true
  self.refused = self.tools:replace(registry, list, function()
    return { origin = 'python', name = source.group, file = self.known.path, found_in = source.found_in }
  end)
  for _, fault in ipairs(self.refused) do
    log.error('%s: %s', source.key, fault)
  end
end

--- Unregisters the tools.
---@param registry mcp-tools.Registry
function Module:unregister(registry)
  self.registered = false
  self.tools:keep(registry)
end

--- Handles that the module was found. Its known tools are registered if its file has not changed.
---@param registry mcp-tools.Registry
---@param source mcp-tools.python_worker.Source
---@param ttl number seconds for which the cache is valid
---@return boolean unread whether the module must be read
function Module:found(registry, source, ttl)
  self.source = source
  if source.fault then
    self:unregister(registry)
    return false
  end
  local fits, fresh = cache.judge(self.known, self.from_disk, ttl)
  if fits and not self.registered then
    self:register(registry)
  end
  self.from_disk = false
  return not fresh
end

--- Handles the result of reading the module. After a failure the earlier tools stay.
---@param registry mcp-tools.Registry
---@param result mcp-tools.python_worker.Scanned
---@return boolean written whether the file is new or has changed
---@return boolean changed whether it has changed
function Module:read(registry, result)
  local before, path = self.known, result.path or self.source.path
  self.failed = result.path == nil
  self.known = {
    path = path,
    stamp = cache.stamp(path),
    at = os.time(),
    tools = self.failed and self.registered and before.tools or result.tools,
    faults = result.faults,
    ms = result.ms,
  }
  local written = not before or before.stamp ~= self.known.stamp
  -- After a new registration every client lists all tools again.
  local is_same = not written and #self.refused == 0 and vim.deep_equal(before.tools, self.known.tools)
  if not (self.registered and (self.failed or is_same)) then
    self:register(registry)
  end
  return written, written and before ~= nil
end

--- Returns what the cache stores: without tools from before a failure.
---@return mcp-tools.python_worker.Known?
function Module:to_cache()
  return self.failed and vim.tbl_extend('force', self.known, { tools = {} }) or self.known
end

--- Returns the module's errors.
---@return string[]
function Module:faults()
  local faults = self.source.fault and { self.source.fault } or self.known and self.known.faults or {}
  return vim.list_extend(vim.list_slice(faults), self.refused)
end

return M
