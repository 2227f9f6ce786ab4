--- One module of tools written in Python: what is known of it, and what of that it offers.

local Registrations = require('mcp-tools.registry.registrations')
local cache = require('mcp-tools.python_worker.cache')
local command = require('mcp-tools.python_worker.command')
local host = require('mcp-tools.python_worker.worker')
local log = require('mcp-tools.log')

local M = {}

---@class mcp-tools.python_worker.Module
---@field source mcp-tools.python_worker.Source
---@field known mcp-tools.python_worker.Known?
---@field from_disk boolean what is known was read in an earlier life of the editor
---@field failed boolean it could not be read the last time; its tools are those of before
---@field offered boolean the registry has what is known
---@field tools mcp-tools.Registrations
---@field refused string[] definitions that the registry did not take in
local Module = {}
Module.__index = Module

---@param known? mcp-tools.python_worker.Known from an earlier life of the editor
---@return mcp-tools.python_worker.Module
function M.new(known)
  return setmetatable({
    known = known,
    from_disk = known ~= nil,
    failed = false,
    offered = false,
    tools = Registrations.new('tools', command.project),
    refused = {},
  }, Module)
end

---@param source mcp-tools.python_worker.Source
---@param name string
---@return fun(ctx: mcp-tools.Ctx, args: table)
local function handler(source, name)
  local place = { path = source.path, module = source.module, sha256 = source.sha256 }
  local tool = { key = source.key, name = name, source = place }
  return function(ctx, args)
    -- An empty table says by the schema which of the two it is.
    host.call(ctx, tool, ctx.call.definition.check:shape(args))
  end
end

--- Makes the registry hold what is known.
---@param registry mcp-tools.Registry
function Module:offer(registry)
  local source = self.source
  local list = vim.tbl_map(function(def)
    return vim.tbl_extend('error', def, { execute = handler(source, def.name) })
  end, self.known.tools)
  self.offered = true
  self.refused = self.tools:replace(registry, list, function()
    return { origin = 'python', name = source.group, file = self.known.path, found_in = source.found_in }
  end)
  for _, fault in ipairs(self.refused) do
    log.error('%s: %s', source.key, fault)
  end
end

--- Takes its tools out.
---@param registry mcp-tools.Registry
function Module:withdraw(registry)
  self.offered = false
  self.tools:keep(registry)
end

--- It lies there, as far as the person lets it be read: what is known is offered while its file is what it was.
---@param registry mcp-tools.Registry
---@param source mcp-tools.python_worker.Source
---@param ttl number seconds that what is known counts
---@return boolean unread it has to be read
function Module:found(registry, source, ttl)
  self.source = source
  if source.fault then
    self:withdraw(registry)
    return false
  end
  local fits, fresh = cache.judge(self.known, self.from_disk, ttl)
  if fits and not self.offered then
    self:offer(registry)
  end
  self.from_disk = false
  return not fresh
end

--- It was read. What it gave before stays while it cannot be.
---@param registry mcp-tools.Registry
---@param result mcp-tools.python_worker.Scanned
---@return boolean written the file is not the one that was read before, if any was
---@return boolean changed one was
function Module:read(registry, result)
  local before, path = self.known, result.path or self.source.path
  self.failed = result.path == nil
  self.known = {
    path = path,
    stamp = cache.stamp(path),
    at = os.time(),
    tools = self.failed and self.offered and before.tools or result.tools,
    faults = result.faults,
    ms = result.ms,
  }
  local written = not before or before.stamp ~= self.known.stamp
  -- What is offered anew has every client list all tools again.
  local is_same = not written and #self.refused == 0 and vim.deep_equal(before.tools, self.known.tools)
  if not (self.offered and (self.failed or is_same)) then
    self:offer(registry)
  end
  return written, written and before ~= nil
end

--- What the next life of the editor may know: not what was there before it failed.
---@return mcp-tools.python_worker.Known?
function Module:lasting()
  return self.failed and vim.tbl_extend('force', self.known, { tools = {} }) or self.known
end

--- What is wrong with it.
---@return string[]
function Module:faults()
  local faults = self.source.fault and { self.source.fault } or self.known and self.known.faults or {}
  return vim.list_extend(vim.list_slice(faults), self.refused)
end

return M
