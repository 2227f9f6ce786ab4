--- Tools written in Python: `mcp_tools/*.py` on the runtimepath, and the modules that `setup{python = …}` names.
---
--- One module that fails takes no other with it. A file of the project is read and run only while the person trusts it.

local Module = require('mcp-tools.python_worker.module')
local buffers = require('mcp-tools.editor.buffer')
local cache = require('mcp-tools.python_worker.cache')
local config = require('mcp-tools.config')
local host = require('mcp-tools.python_worker.worker')
local install = require('mcp-tools.bridge.install')
local python_modules = require('mcp-tools.python_worker.modules')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.instances.project')

local M = {}

---@type table<string, mcp-tools.python_worker.Module>
local modules = {}
---@type string? why no module can be read
local no_python
--- The person has heard of what fails since the editor started.
local heard = false

--- Whoever reads modules: another Python may give other definitions.
local function read_by()
  return ('%s %s'):format(project.VERSION, config.get('bridge.python') or 'private environment')
end

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

--- Has each module that is there offer what is known of it, and those that are gone nothing.
---@param registry mcp-tools.Registry
---@param sources mcp-tools.python_worker.Source[]
---@param ttl number
---@return mcp-tools.python_worker.Source[] unread
local function settle(registry, sources, ttl)
  local remembered = next(modules) == nil and cache.read(read_by()) or {} -- at the first look
  local there, unread = {}, {}
  for _, source in ipairs(sources) do
    local module = modules[source.key] or Module.new(remembered[source.key])
    there[source.key], modules[source.key] = true, module
    if module:found(registry, source, ttl) then
      table.insert(unread, source)
    end
  end
  for key, module in pairs(modules) do
    if not there[key] then
      modules[key] = nil
      module:unregister(registry)
    end
  end
  return unread
end

--- A fault with its place.
---@param file string
---@param fault string
---@return string
local function placed(file, fault)
  local line, text = fault:match('^line (%d+): (.*)$')
  return line and ('%s:%s: %s'):format(file, line, text) or ('%s: %s'):format(file, fault)
end

---@param count integer
---@param what string
---@return string
local function and_more(count, what)
  return count > 0 and (' (and %d more%s: :checkhealth mcp-tools)'):format(count, what) or ''
end

--- Tells whoever has a module open what is wrong with it, once for each time that it was written.
---@param module mcp-tools.python_worker.Module
local function tell(module)
  local path, faults = module.known.path, module:faults()
  if #faults > 0 and path and buffers.of_path(path) then
    notify.error(placed(vim.fn.fnamemodify(path, ':~:.'), faults[1]) .. and_more(#faults - 1, ''))
    heard = true
  end
end

--- Tells once, after the first look, that something cannot be loaded: a tool that is not there is looked for elsewhere.
--- What the project brings along unasked is no news.
local function tell_at_start()
  local texts = {}
  for key, module in vim.spairs(modules) do
    local faults = module.known and not module.source.fault and module.known.faults or {}
    if #faults > 0 then
      local path = module.known.path or key
      -- The name before the folder: a narrow screen cuts the end.
      local folder = vim.fn.fnamemodify(path, ':~:h')
      local where = folder ~= '.' and (' (in %s)'):format(folder) or ''
      local text = placed(vim.fs.basename(path), faults[1]):gsub('ModuleNotFoundError: ', '') -- it says so itself
      table.insert(texts, text .. where)
    end
  end
  if #texts > 0 and not heard then
    notify.warn(texts[1] .. and_more(#texts - 1, #texts > 2 and ' such files' or ' such file'))
  end
  heard = true
end

---@param registry mcp-tools.Registry
---@param sources mcp-tools.python_worker.Source[] those that were read: of two tools with one name the first stays
---@param results table<string, mcp-tools.python_worker.Scanned>
local function take(registry, sources, results)
  local any_changed, lasting = false, {}
  for _, source in ipairs(sources) do
    local module, result = modules[source.key], results[source.key]
    if module and result then
      local written, changed = module:read(registry, result)
      any_changed = any_changed or changed
      if written then
        tell(module)
      end
    end
  end
  if any_changed then
    host.renew() -- it has run the module as it was
  end
  for key, module in pairs(modules) do
    lasting[key] = module:to_cache()
  end
  cache.write(read_by(), lasting)
end

--- Makes the registry hold what the modules say now.
---@param registry mcp-tools.Registry
---@param done fun()
---@param ttl number seconds that what is known counts
function M.scan(registry, done, ttl)
  local sources = python_modules.find()
  if #sources == 0 and next(modules) == nil then
    return done()
  end
  local unread = settle(registry, sources, ttl)
  if #unread == 0 then
    no_python = nil
    tell_at_start()
    return done()
  end
  -- Start-up cost: what is known from earlier is enough, mostly.
  require('mcp-tools.python_worker.reader').read(unread, function(results, fault)
    no_python = fault
    if results then
      take(registry, unread, results)
      tell_at_start()
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
    for _, fault in ipairs(module:faults()) do
      table.insert(list, { source = key, error = fault })
    end
  end
  return list
end

return M
