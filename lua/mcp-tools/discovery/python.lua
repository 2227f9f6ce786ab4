--- Tools written in Python: `mcp_tools/*.py` on the runtimepath, and the modules that `setup{python = …}` names.
---
--- Receives: the files that lie there; what is known of them from earlier; what reading them gives.
--- Sends: their definitions to the registry, with handlers that pass calls to the host.
--- Does not know about: processes, how a module is read. Names that begin with an underscore are nobody's business.
---
--- One module that fails takes no other with it. A file of the project is read and run only while the person trusts it.

local Holder = require('mcp-tools.registry.holder')
local buffers = require('mcp-tools.editor.buffers')
local cache = require('mcp-tools.python.cache')
local command = require('mcp-tools.python.command')
local config = require('mcp-tools.config')
local host = require('mcp-tools.python.host')
local install = require('mcp-tools.bridge.install')
local log = require('mcp-tools.log')
local python_modules = require('mcp-tools.python.modules')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.files.project')

local M = {}

---@class mcp-tools.python.Module
---@field source mcp-tools.python.Source
---@field known mcp-tools.python.Known?
---@field tools mcp-tools.Holder
---@field refused string[] definitions that were not taken in

---@type table<string, mcp-tools.python.Module>
local modules = {}
---@type table<string, mcp-tools.python.Known>? from the disk, until the first look
local remembered
---@type string? why no module can be read
local no_python

--- Whoever reads modules: another Python may give other definitions.
local function read_by()
  return ('%s %s'):format(project.VERSION, config.get('bridge.python') or 'private environment')
end

-- Registry ---------------------------------------------------------------------------------------------------------

---@param source mcp-tools.python.Source
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

--- Makes the registry hold what is known of a module.
---@param registry mcp-tools.Registry
---@param module mcp-tools.python.Module
local function apply(registry, module)
  local list = vim.tbl_map(function(def)
    return vim.tbl_extend('error', def, { execute = handler(module.source, def.name) })
  end, module.known.tools)
  module.refused = module.tools:replace(registry, list, function()
    local source = module.source
    return { origin = 'python', name = source.group, file = module.known.path, found_in = source.found_in }
  end)
  for _, fault in ipairs(module.refused) do
    log.error('%s: %s', module.source.key, fault)
  end
end

-- Looking ----------------------------------------------------------------------------------------------------------

--- Files that are looked at again when they are written.
M.pattern = '*.py'

--- Is a file one of the modules, or could it be one?
---@param path string resolved
---@return boolean
function M.is_ours(path)
  local ours = path:find('/mcp_tools/[^/]+$') ~= nil
  for _, module in pairs(modules) do
    ours = ours or module.known ~= nil and module.known.path == path
  end
  return ours
end

--- Calls `fn` when there is a new Python: what could not be read before may be read now.
---@param fn fun()
function M.on_stale(fn)
  install.on_done(function()
    host.renew()
    fn()
  end)
end

---@param registry mcp-tools.Registry
---@param sources mcp-tools.python.Source[]
---@param ttl number
---@return mcp-tools.python.Source[] unread
local function settle(registry, sources, ttl)
  local there, unread = {}, {}
  for _, source in ipairs(sources) do
    there[source.key] = true
    local module = modules[source.key] or { tools = Holder.new('tools', command.project), refused = {} }
    modules[source.key] = module
    module.source = source
    if remembered and not module.known then
      module.known, module.from_disk = remembered[source.key], true
    end
    local fits, fresh = cache.judge(module.known, module.from_disk == true, ttl)
    if source.fault then
      module.tools:keep(registry)
    elseif module.from_disk and fits and next(module.tools.held) == nil then
      apply(registry, module)
    end
    if not source.fault and not fresh then
      table.insert(unread, source)
    end
    module.from_disk = nil
  end
  remembered = nil
  for key, module in pairs(modules) do
    if not there[key] then
      modules[key] = nil
      module.tools:keep(registry)
    end
  end
  return unread
end

--- Tells whoever has a module open what is wrong with it, once for each time that it was written.
---@param path string?
---@param faults string[]
local function tell(path, faults)
  if #faults == 0 or not path or not buffers.of_path(path) then
    return
  end
  local line, text = faults[1]:match('^line (%d+): (.*)$')
  local place = vim.fn.fnamemodify(path, ':~:.') .. (line and ':' .. line or '')
  local more = #faults > 1 and (' (and %d more: :checkhealth mcp-tools)'):format(#faults - 1) or ''
  notify.error(('%s: %s%s'):format(place, text or faults[1], more))
end

---@param registry mcp-tools.Registry
---@param sources mcp-tools.python.Source[] those that were read: of two tools with one name the first stays
---@param results table<string, mcp-tools.python.Scanned>
local function take(registry, sources, results)
  local changed = false
  for _, source in ipairs(sources) do
    local module, result = modules[source.key], results[source.key]
    if module and result then
      local before = module.known
      local path = result.path or module.source.path
      local stamp = cache.stamp(path)
      changed = changed or before ~= nil and before.stamp ~= stamp
      -- What it gave before stays while it cannot be read.
      local tools = (result.path or not before) and result.tools or before.tools
      module.known =
        { path = path, stamp = stamp, at = os.time(), tools = tools, faults = result.faults, ms = result.ms }
      module.failed = not result.path
      if result.path or not before then
        apply(registry, module)
      end
      if not before or before.stamp ~= stamp then
        tell(path, vim.list_extend(vim.list_slice(result.faults), module.refused))
      end
    end
  end
  if changed then
    host.renew() -- it has run the module as it was
  end
end

local function keep()
  local known = {}
  for key, module in pairs(modules) do
    -- What a module gave before it failed stays offered in this editor, not in the next.
    known[key] = module.failed and vim.tbl_extend('force', module.known, { tools = {} }) or module.known
  end
  cache.write(read_by(), known)
end

--- Makes the registry hold what the modules say now.
---@param registry mcp-tools.Registry
---@param done fun()
---@param ttl number seconds that what is known counts
function M.scan(registry, done, ttl)
  local sources = python_modules.look()
  if #sources == 0 and next(modules) == nil then
    return done()
  end
  remembered = next(modules) == nil and cache.read(read_by()) or nil
  local unread = settle(registry, sources, ttl)
  if #unread == 0 then
    no_python = nil
    return done()
  end
  -- Start-up cost: what is known from earlier is enough, mostly.
  require('mcp-tools.python.reader').read(unread, function(results, fault)
    no_python = fault
    if results then
      take(registry, unread, results)
      keep()
    end
    done()
  end)
end

--- Reads modules again, changed or not.
---@param registry mcp-tools.Registry
---@param wanted fun(group: string, name: string): boolean
---@param done fun()
---@param ttl number
function M.reload(registry, wanted, done, ttl)
  for _, module in pairs(modules) do
    local names = module.tools:keys()
    for _, name in ipairs(#names > 0 and names or { '' }) do
      if module.known and wanted(module.source.group, name) then
        module.known.at = 0
      end
    end
  end
  host.renew()
  M.scan(registry, done, ttl)
end

---@return mcp-tools.Found[]
function M.found()
  local list = {}
  for key, module in vim.spairs(modules) do
    local known = module.known or {}
    table.insert(list, { file = known.path or key, tools = module.tools:keys(), ms = known.ms })
  end
  return list
end

--- How old the oldest of what is known is; it may have been read in an earlier life of the editor.
---@return integer? ns
function M.age()
  local oldest
  for _, module in pairs(modules) do
    oldest = math.min(oldest or math.huge, module.known and module.known.at or os.time())
  end
  return oldest and (os.time() - oldest) * 1e9
end

---@return mcp-tools.Failure[]
function M.failures()
  local list = {}
  if no_python then
    table.insert(list, { source = 'tools written in Python', error = no_python })
  end
  for key, module in vim.spairs(modules) do
    local faults = module.source.fault and { module.source.fault } or module.known and module.known.faults or {}
    for _, fault in ipairs(vim.list_extend(vim.list_slice(faults), module.refused)) do
      table.insert(list, { source = key, error = fault })
    end
  end
  return list
end

return M
