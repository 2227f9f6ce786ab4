--- Python tools: `mcp_tools/*.py` in 'runtimepath', and the modules in `setup{python = …}`.
---
--- A module that fails does not affect the others. A file of the project is read and run only while the user trusts it.

local buffers = require('mcp-tools.editor.buffer')
local config = require('mcp-tools.config')
local install = require('mcp-tools.bridge.install')
local python_modules = require('mcp-tools.python_worker.modules')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.instances.project')
local worker = require('mcp-tools.python_worker.worker')

local M = {}

---@type table<string, mcp-tools.python_worker.Module>
local modules = {}
---@type string? why no module can be read
local no_python
--- Whether the user was notified of failures since the editor started.
local notified = false

--- Returns the key of the cache: another Python may return other definitions.
local function cache_key()
  return ('%s %s'):format(project.VERSION, config.get('bridge.python') or 'private environment')
end

--- Writing one of these files may cause a scan.
M.pattern = '*.py'

--- Returns whether a file is a module or may become one.
---@param path string resolved
---@return boolean
function M.is_ours(path)
  local ours = path:find('/mcp_tools/[^/]+$') ~= nil
  for _, module in pairs(modules) do
    ours = ours or module.known ~= nil and module.known.path == path
  end
  return ours
end

--- Calls `fn` when another Python was installed, which may be able to read more modules.
---@param fn fun()
function M.on_stale(fn)
  install.on_done(function()
    worker.renew()
    fn()
  end)
end

--- Registers the cached definitions of the modules, and removes the definitions of modules that no longer exist.
---@param registry mcp-tools.Registry
---@param sources mcp-tools.python_worker.Source[]
---@param ttl number
---@return mcp-tools.python_worker.Source[] unread
local function register_known(registry, sources, ttl)
  local cached = next(modules) == nil and python_modules.cached(cache_key()) or {} -- only for the first scan
  local exists, unread = {}, {}
  for _, source in ipairs(sources) do
    local module = modules[source.key] or python_modules.new(cached[source.key])
    exists[source.key], modules[source.key] = true, module
    if module:found(registry, source, ttl) then
      table.insert(unread, source)
    end
  end
  for key, module in pairs(modules) do
    if not exists[key] then
      modules[key] = nil
      module:unregister(registry)
    end
  end
  return unread
end

--- Returns a fault with file and line.
---@param file string
---@param fault string
---@return string
local function with_location(file, fault)
  local line, text = fault:match('^line (%d+): (.*)$')
  return line and ('%s:%s: %s'):format(file, line, text) or ('%s: %s'):format(file, fault)
end

---@param count integer
---@param what string
---@return string
local function and_more(count, what)
  return count > 0 and (' (and %d more%s: :checkhealth mcp-tools)'):format(count, what) or ''
end

--- Notifies the user of faults in a module that is open, once for each write.
---@param module mcp-tools.python_worker.Module
local function notify_written(module)
  local path, faults = module.known.path, module:faults()
  if #faults > 0 and path and buffers.of_path(path) then
    notify.error(with_location(vim.fn.fnamemodify(path, ':~:.'), faults[1]) .. and_more(#faults - 1, ''))
    notified = true
  end
end

--- Notifies the user of failures once, after the first scan. Untrusted files of the project are not reported.
local function notify_at_start()
  local texts = {}
  for key, module in vim.spairs(modules) do
    local faults = module.known and not module.source.fault and module.known.faults or {}
    if #faults > 0 then
      local path = module.known.path or key
      -- The name comes before the directory, because a narrow screen cuts the end.
      local dir = vim.fn.fnamemodify(path, ':~:h')
      local where = dir ~= '.' and (' (in %s)'):format(dir) or ''
      local text = with_location(vim.fs.basename(path), faults[1]):gsub('ModuleNotFoundError: ', '') -- redundant
      table.insert(texts, text .. where)
    end
  end
  if #texts > 0 and not notified then
    notify.warn(texts[1] .. and_more(#texts - 1, #texts > 2 and ' such files' or ' such file'))
  end
  notified = true
end

---@param registry mcp-tools.Registry
---@param sources mcp-tools.python_worker.Source[] those that were read, in the order of precedence
---@param results table<string, mcp-tools.python_worker.Scanned>
local function register_read(registry, sources, results)
  local any_changed, lasting = false, {}
  for _, source in ipairs(sources) do
    local module, result = modules[source.key], results[source.key]
    if module and result then
      local written, changed = module:read(registry, result)
      any_changed = any_changed or changed
      if written then
        notify_written(module)
      end
    end
  end
  if any_changed then
    worker.renew() -- it has the old code
  end
  for key, module in pairs(modules) do
    lasting[key] = module:to_cache()
  end
  python_modules.cache(cache_key(), lasting)
end

--- Updates the registry from the modules.
---@param registry mcp-tools.Registry
---@param done fun()
---@param request mcp-tools.ScanRequest
function M.scan(registry, done, request)
  for _, module in pairs(modules) do
    if module.known and module.tools:any(module.source.group, request.wanted) then
      module.known.at = 0 -- reads it again
      worker.renew()
    end
  end
  local sources = python_modules.find()
  if #sources == 0 and next(modules) == nil then
    return done()
  end
  local unread = register_known(registry, sources, request.ttl)
  if #unread == 0 then
    no_python = nil
    notify_at_start()
    return done()
  end
  -- Start-up cost: usually the cache is sufficient.
  require('mcp-tools.python_worker.reader').read(unread, function(results, fault)
    no_python = fault
    if results then
      register_read(registry, unread, results)
      notify_at_start()
    end
    done()
  end)
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

--- Returns the age of the oldest cached module, which may be from an earlier editor.
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
    table.insert(list, { source = 'Python tools', error = no_python })
  end
  for key, module in vim.spairs(modules) do
    for _, fault in ipairs(module:faults()) do
      table.insert(list, { source = key, error = fault })
    end
  end
  return list
end

return M
