--- Python modules with tools: finds them, and keeps their definitions, in memory and on disk.

local Registrations = require('mcp-tools.registry.registrations')
local config = require('mcp-tools.config')
local log = require('mcp-tools.log')
local paths = require('mcp-tools.files.paths')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')
local runtimepath = require('mcp-tools.files.runtimepath')
local registry_source = require('mcp-tools.registry.source')
local trusted = require('mcp-tools.privacy.trusted')
local worker = require('mcp-tools.python_worker.worker')

local uv = vim.uv

local M = {}

---@return string
local function project_root()
  return paths.real_root(project.root())
end

-- The cache on disk, so that listing tools starts no process --------------------------------------------------------

--- Version of the file's format.
local FORMAT = 1
local MAX_BYTES = 8 * 1024 * 1024

---@class mcp-tools.python_worker.Known
---@field path string? the module's file
---@field stamp string? its modification time and size
---@field at integer unix seconds
---@field tools table[] definitions
---@field faults string[] errors of the module or of some of its tools
---@field ms integer? time it took to read the module

--- Decides by timestamps whether a cached module is current.
---@param known mcp-tools.python_worker.Known?
---@param from_disk boolean whether an earlier Neovim process has read it; then a failure need not be retried
---@param ttl number seconds for which it is valid
---@return boolean fits its tools may be registered
---@return boolean fresh it need not be read again
local function check_cached(known, from_disk, ttl)
  if not known then
    return false, false
  end
  local recent = os.time() - known.at < ttl
  if not known.path then -- the module was not found
    return true, recent and from_disk
  end
  local fits = known.stamp == paths.stamp(known.path)
  return fits, fits and recent and (#known.faults == 0 or from_disk)
end

local function cache_file()
  return vim.fs.joinpath(project.state_dir(), 'python-tools.json')
end

--- Reads the cache. It is valid for the same Python and version of the plugin only.
---@param by string identifies both
---@return table<string, mcp-tools.python_worker.Known>
function M.cached(by)
  local read, err = private_files.read(cache_file(), MAX_BYTES)
  if not read then
    log.warn('the cache of Python tools is not used: %s', err)
  end
  local value = read and read.value
  if not value or value.format ~= FORMAT or value.by ~= by or type(value.modules) ~= 'table' then
    return {}
  end
  return value.modules
end

--- Writes the cache. After a failure only the next start is slower.
---@param by string
---@param modules table<string, mcp-tools.python_worker.Known>
function M.cache(by, modules)
  local ok, err = private_files.ensure_dir(project.state_dir())
  if ok then
    local written = next(modules) and modules or vim.empty_dict()
    ok, err = private_files.write(cache_file(), { format = FORMAT, by = by, modules = written })
  end
  if not ok then
    log.warn('the cache of Python tools cannot be written: %s', err)
  end
end

-- Finding modules -----------------------------------------------------------------------------------------------------

local DIRECTORY = 'mcp_tools'

---@class mcp-tools.python_worker.Source
---@field key string the path, or `module:<name>`
---@field group string
---@field path string?
---@field module string?
---@field found_in string? path with unresolved links
---@field in_project boolean?
---@field sha256 string? hash of the text that the user trusts, for a file of the project
---@field fault string? why it must not be read

---@param path string resolved
---@param found_in string path with unresolved links
---@param root string resolved
---@return mcp-tools.python_worker.Source
local function file_source(path, found_in, root)
  local found = { key = path, path = path, found_in = found_in, group = vim.fs.basename(path):gsub('%.py$', '') }
  if registry_source.is_project_file(found_in, root) then
    local text, why = trusted.read(path)
    found.sha256, found.fault, found.in_project = text and vim.fn.sha256(text), why, true
  end
  return found
end

--- Finds all modules; the first of two tools with the same name applies.
---@return mcp-tools.python_worker.Source[]
function M.find()
  local root, list, seen = project_root(), {}, {}
  for _, name in ipairs(config.get('python.modules')) do
    local fault = not ('.' .. name):match('^[%w_.]+$') and 'not a valid module name'
      or ('.' .. name):find('._', 1, true) and 'names that begin with an underscore are private'
      or nil
    table.insert(list, { key = 'module:' .. name, module = name, group = name, fault = fault })
  end
  for _, name in ipairs(runtimepath.files(DIRECTORY, '^[^_.].*%.py$')) do
    local path = uv.fs_realpath(name)
    if path and paths.stamp(path) then
      table.insert(list, file_source(path, name, root))
    end
  end
  -- If one of two paths is not in the project, the file is the user's: a project cannot change that by a link.
  for _, each in ipairs(list) do
    local other = seen[each.key]
    if not other or other.in_project and not each.in_project then
      seen[each.key] = each
    end
  end
  return vim.tbl_filter(function(each)
    return seen[each.key] == each
  end, list)
end

-- One module ----------------------------------------------------------------------------------------------------------

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
    tools = Registrations.new('tools', project_root),
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
  local fits, fresh = check_cached(self.known, self.from_disk, ttl)
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
    stamp = path and paths.stamp(path),
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
