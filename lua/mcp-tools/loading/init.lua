--- Finds and loads definitions that are not registered by a call: files of plugins, Python modules, mounts.
---
--- There is no timer: each use of the registry checks whether a new scan is due, and schedules it.

local config = require('mcp-tools.config')
local log = require('mcp-tools.log')

local uv = vim.uv

local M = {}

---@class mcp-tools.DiscoverySource
---@field scan fun(registry: mcp-tools.Registry, done: fun(), request: mcp-tools.ScanRequest) updates the registry;
---  loads only files that are new, changed, failed or wanted; calls `done` once, at once or later
---@field found fun(): mcp-tools.Found[]
---@field failures fun(): mcp-tools.Failure[] current failures
---@field pattern? string pattern of files (|autocmd-pattern|); writing one may require a new scan
---@field is_ours? fun(path: string): boolean whether writing this file requires a scan (default: always)
---@field on_stale? fun(fn: fun()) calls `fn` whenever a scan is required for another reason
---@field age? fun(): integer? ns; for sources with a persistent cache

---@class mcp-tools.Found one file or module
---@field file string
---@field tools string[] names, sorted
---@field ms integer? time to read it

---@class mcp-tools.Failure
---@field source string a file, a module or an option
---@field error string

--- In the order of the scans. If two tools have the same name, the first stays.
M.SOURCES = { 'ext', 'python', 'mounts' }

--- Seconds until a source is scanned again. The variable is for authors of tools.
local TTL, TTL_VARIABLE = 300, 'MCP_TOOLS_CACHE_TTL'

---@class mcp-tools.Scan
---@field at integer ns, start of the last scan
---@field busy boolean? a scan is running
---@field queue mcp-tools.ScanRequest[] to be run after it
---@field error string? why the last scan failed

---@class mcp-tools.ScanRequest
---@field ttl number seconds that a persistent cache is valid
---@field wanted fun(group: string, name: string): boolean definitions to load even if their file has not changed; the
---  group is that of registry/source.lua
---@field cb fun()

---@type table<string, mcp-tools.Scan>
local scans = {}
local listeners = {}
local watching = false
--- ns, when the next scan of all sources is due. Each call checks it, so it must be cheap.
local due = 0

--- Returns the module of mounts; nil while none is configured, as for most users.
---@return table?
local function loaded_mounts()
  local tools = config.get().tools
  local asked = next(config.get().mounts) ~= nil
    or type(tools) == 'table'
      and vim.iter(ipairs(tools)):any(function(_, item)
        return type(item) == 'table'
      end)
  return asked and require('mcp-tools.mounts') or package.loaded['mcp-tools.mounts'] -- start-up cost
end

---@return mcp-tools.MountStatus[]
local function mount_status()
  local mounts = loaded_mounts()
  return mounts and mounts.status() or {}
end

---@type mcp-tools.DiscoverySource
local mounts_source = {
  pattern = '*.json',
  is_ours = function(path)
    local mounts = loaded_mounts()
    return vim.iter(mounts and mounts.files() or {}):any(function(each)
      return uv.fs_realpath(each) == path
    end)
  end,
  scan = function(_, done)
    local mounts = loaded_mounts()
    if mounts then
      mounts.sync()
    end
    done()
  end,
  found = function()
    return vim.tbl_map(function(each)
      return { file = ('mount %s (%s, %s)'):format(each.name, each.from, each.state), tools = {} }
    end, mount_status())
  end,
  failures = function()
    local list = {}
    for _, each in ipairs(mount_status()) do
      local faults = each.error and each.state ~= 'ready' and { each.error } or {}
      for _, fault in ipairs(vim.list_extend(faults, each.faults)) do
        table.insert(list, { source = 'mount ' .. each.name, error = fault })
      end
    end
    return list
  end,
}

---@param name string
---@return mcp-tools.DiscoverySource
local function source(name)
  return name == 'mounts' and mounts_source or require('mcp-tools.loading.' .. name)
end

--- Returns how long a scan is valid.
---@return number seconds
function M.ttl()
  local seconds = tonumber(vim.env[TTL_VARIABLE])
  return seconds and seconds >= 0 and seconds or TTL
end

--- Runs the next request of a source, unless one is running.
---@param registry mcp-tools.Registry
---@param name string
local function run_next(registry, name)
  local scan = scans[name]
  local request = not scan.busy and table.remove(scan.queue, 1)
  if not request then
    return
  end
  scan.busy, scan.at, scan.error = true, uv.hrtime(), nil
  local over = false
  local function done()
    if over then
      return
    end
    over, scan.busy = true, false
    for _, fn in ipairs(vim.list_extend({ request.cb }, listeners)) do
      log.guard('a callback of a scan for tools', fn)
    end
    run_next(registry, name)
  end
  local ok, err = log.guard(('scan for tools (%s)'):format(name), function()
    source(name).scan(registry, done, request)
  end)
  if not ok then
    scan.error = tostring(err)
    done()
  end
end

local function none()
  return false
end

--- Queues a request for sources; each source runs one at a time.
---@param registry mcp-tools.Registry
---@param names string[]
---@param wanted? fun(group: string, name: string): boolean
---@param cb? fun() called when all are done
local function request_scan(registry, names, wanted, cb)
  local left = #names
  local function answered()
    left = left - 1
    if left == 0 and cb then
      cb()
    end
  end
  for _, name in ipairs(names) do
    scans[name] = scans[name] or { at = uv.hrtime(), queue = {} }
    table.insert(scans[name].queue, { ttl = M.ttl(), wanted = wanted or none, cb = answered })
  end
  for _, name in ipairs(names) do
    run_next(registry, name)
  end
  local next_due = uv.hrtime() + M.ttl() * 1e9
  due = names == M.SOURCES and next_due or math.min(due, next_due)
end

--- Scans a source when one of its files is written.
---@param registry mcp-tools.Registry
local function watch(registry)
  if watching then
    return
  end
  watching = true
  local group = vim.api.nvim_create_augroup('mcp-tools.loading', {})
  for _, name in ipairs(M.SOURCES) do
    local each = source(name)
    local function rescan()
      M.refresh(registry, name)
    end
    if each.pattern then
      vim.api.nvim_create_autocmd('BufWritePost', {
        group = group,
        pattern = each.pattern,
        callback = function(event)
          local path = uv.fs_realpath(event.match)
          if path and (each.is_ours == nil or each.is_ours(path)) then
            rescan()
          end
        end,
      })
    end
    if each.on_stale then
      each.on_stale(rescan)
    end
  end
end

--- To be called before the registry is used: scans all sources the first time, and schedules a scan when the last one
--- is too old.
---@param registry mcp-tools.Registry
function M.use(registry)
  if uv.hrtime() < due or not config.is_setup() then
    return
  end
  watch(registry)
  local is_first = due == 0
  due = math.huge -- until a scan begins
  if is_first then
    return request_scan(registry, M.SOURCES)
  end
  vim.schedule(function()
    local idle = vim.tbl_filter(function(name)
      return not scans[name].busy
    end, M.SOURCES)
    request_scan(registry, idle)
  end)
end

--- Scans one source or all.
---@param registry mcp-tools.Registry
---@param name? string a source
---@param cb? fun()
---@param wanted? fun(group: string, name: string): boolean definitions to load even if their file has not changed
function M.refresh(registry, name, cb, wanted)
  watch(registry)
  request_scan(registry, name and { name } or M.SOURCES, wanted, cb)
end

--- Calls `fn` after each scan.
---@param fn fun()
---@return fun() stop
function M.on_scan(fn)
  table.insert(listeners, fn)
  return function()
    listeners = vim.tbl_filter(function(listener)
      return listener ~= fn
    end, listeners)
  end
end

--- Returns the failures of all sources.
---@return mcp-tools.Failure[]
function M.failures()
  local list = {}
  for _, name in ipairs(M.SOURCES) do
    if scans[name] then
      vim.list_extend(list, source(name).failures())
      if scans[name].error then
        table.insert(list, { source = 'scan for tools: ' .. name, error = scans[name].error })
      end
    end
  end
  return list
end

---@class mcp-tools.SourceReport
---@field name string
---@field age_ms integer? since the last scan
---@field ttl_ms integer
---@field found mcp-tools.Found[]
---@field failures mcp-tools.Failure[]

--- Returns what each source has found, when, and what failed.
---@return mcp-tools.SourceReport[]
function M.report()
  local list = {}
  for _, name in ipairs(M.SOURCES) do
    local each, scan = source(name), scans[name]
    local age = each.age and each.age() or scan and uv.hrtime() - scan.at
    table.insert(list, {
      name = name,
      age_ms = age and math.floor(age / 1e6),
      ttl_ms = math.floor(M.ttl() * 1000),
      found = each.found(),
      failures = each.failures(),
    })
  end
  return list
end

return M
