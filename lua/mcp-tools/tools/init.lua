--- Bundled tools: finds their files and hands them to the registry, by the same door as everyone's.
---
--- Receives: what `setup{tools = …}` names.
--- Sends: definitions to `Registry:add_tool`.
--- Does not know about: any tool. A file `tools/<group>/<name>.lua` returns one definition named `<group>_<name>`; a
--- file `tools/<name>.lua` is a group of one.

local config = require('mcp-tools.config')
local log = require('mcp-tools.log')

local M = {}

---@type { source: string, error: string }[] files that could not be loaded
M.failures = {}

---@class mcp-tools.ToolFile
---@field name string
---@field group string
---@field module string

---@type mcp-tools.ToolFile[]?
local files
---@type any the option that is in force
local applied
---@type table<string, true> names that this loader put into the registry
local ours = {}

local function here()
  return vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
end

--- Every bundled tool's file; the folder is read once.
---@return mcp-tools.ToolFile[]
function M.files()
  if files then
    return files
  end
  files = {}
  for path, kind in vim.fs.dir(here(), { depth = 2 }) do
    local stem = path:match('^(.*)%.lua$')
    if kind ~= 'directory' and stem and not stem:match('init$') then
      local group = stem:match('^([^/]+)/') or stem
      table.insert(files, {
        name = (stem:gsub('/', '_')),
        group = group,
        module = 'mcp-tools.tools.' .. stem:gsub('/', '.'),
      })
    end
  end
  table.sort(files, function(a, b)
    return a.name < b.name
  end)
  return files
end

---@param file mcp-tools.ToolFile
---@return table? definition
local function load(file)
  local ok, def = xpcall(require, debug.traceback, file.module)
  if ok and type(def) == 'table' and def.name == file.name then
    return def
  end
  local why = not ok and def
    or type(def) ~= 'table' and 'it returns no table'
    or ("its definition is named '%s', its path says '%s'"):format(tostring(def.name), file.name)
  table.insert(M.failures, { source = file.module, error = why })
  log.error('%s could not be loaded: %s', file.module, why)
end

--- Does the option name this file?
---@param file mcp-tools.ToolFile
---@param wanted table<string, true> groups and names
---@param off table<string, true>
---@return boolean|'recommended'
local function selected(file, wanted, off)
  if off[file.name] or off[file.group] and not wanted[file.name] then
    return false
  end
  if wanted.all or wanted[file.group] or wanted[file.name] then
    return true
  end
  return wanted.recommended and 'recommended' or false
end

---@param registry mcp-tools.Registry
---@param def table
---@param source mcp-tools.Source
local function add(registry, def, source)
  local _, fault = registry:add_tool(def, source)
  if fault then
    log.error('%s', fault) -- the registry keeps it for health
  else
    ours[def.name] = true
  end
end

--- Makes the registry hold what the options name: adds what is new, takes out what is no longer named. A tool that
--- somebody else registered under the same name stays.
---@param registry mcp-tools.Registry
function M.sync(registry)
  local option = config.get().tools
  if applied == option then
    return
  end
  applied = option
  M.failures = {}
  local selection = config.tool_selection()
  local wanted, known = {}, { all = true, recommended = true }
  for _, name in ipairs(selection.names) do
    wanted[name] = true
  end
  local stale = ours
  ours = {}
  for _, file in ipairs(M.files()) do
    known[file.name], known[file.group] = true, true
    local choice = selected(file, wanted, selection.off)
    local foreign = registry:get(file.name) and not stale[file.name]
    if choice and not foreign then
      local def = load(file)
      if def and (choice == true or def.recommended) then
        add(registry, def, { origin = 'bundled', group = file.group })
      end
    end
  end
  for _, def in ipairs(selection.definitions) do
    add(registry, def, { origin = 'registered' })
  end
  for name in pairs(stale) do
    if not ours[name] then
      registry:remove_tool(name)
    end
  end
  for name in pairs(wanted) do
    if not known[name] then
      table.insert(M.failures, { source = 'setup{tools}', error = ("there is no group or tool '%s'"):format(name) })
      log.warn("setup{tools}: there is no group or tool '%s'", name)
    end
  end
  if #selection.mounts > 0 then
    log.warn('setup{tools}: mounted servers are not there yet')
  end
end

return M
