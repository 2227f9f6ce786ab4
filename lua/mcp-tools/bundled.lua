--- Bundled resources and prompts: finds their files and hands them to the registry, by the same door as everyone's.
---
--- Receives: what `setup{resources = …, prompts = …}` say.
--- Sends: definitions to the registry.
--- Does not know about: any of them. A file `resources/<name>.lua` returns one definition with that name, and so does
--- a file `prompts/<name>.lua`. Names with a slash are folders: `resources/buffer/text.lua` is `buffer_text`.

local config = require('mcp-tools.config')
local log = require('mcp-tools.log')

local M = {}

---@class mcp-tools.BundledKind
---@field add fun(registry: mcp-tools.Registry, def: table, source: mcp-tools.Source): table?, string?
---@field remove fun(registry: mcp-tools.Registry, key: string): boolean
---@field has fun(registry: mcp-tools.Registry, def: table): boolean

---@type table<'resources'|'prompts', mcp-tools.BundledKind>
local KINDS = {
  resources = {
    add = function(registry, def, source)
      return registry:add_resource(def, source)
    end,
    remove = function(registry, key)
      return registry:remove_resource(key)
    end,
    has = function(registry, def)
      local entries = registry.entries
      return (entries.resources[def.uri or false] or entries.templates[def.uri_template or false]) ~= nil
    end,
  },
  prompts = {
    add = function(registry, def, source)
      return registry:add_prompt(def, source)
    end,
    remove = function(registry, key)
      return registry:remove_prompt(key)
    end,
    has = function(registry, def)
      return registry.entries.prompts[def.name] ~= nil
    end,
  },
}

---@class mcp-tools.Folder what is known of one folder
---@field files mcp-tools.BundledFile[]?
---@field read_at integer? ns, when the folder was read
---@field applied any the option that is in force; `Folder` itself before the first time
---@field ours table<string, string> name → key in the registry
---@field failures { source: string, error: string }[]

---@class mcp-tools.BundledFile
---@field name string
---@field module string

---@return table<string, mcp-tools.Folder>
local function fresh()
  local folders = {}
  for kind in pairs(KINDS) do
    local folder = { ours = {}, failures = {} }
    folder.applied = folder
    folders[kind] = folder
  end
  return folders
end

local folders = fresh()

--- Every bundled file of a kind; the folder is read once.
---@param kind 'resources'|'prompts'
---@return mcp-tools.BundledFile[]
function M.files(kind)
  local folder = folders[kind]
  if folder.files then
    return folder.files
  end
  folder.files, folder.read_at = {}, vim.uv.hrtime()
  local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
  for path, type_ in vim.fs.dir(here .. '/' .. kind, { depth = 2 }) do
    local stem = path:match('^(.*)%.lua$')
    if type_ ~= 'directory' and stem then
      local module = ('mcp-tools.%s.%s'):format(kind, (stem:gsub('/', '.')))
      table.insert(folder.files, { name = (stem:gsub('/', '_')), module = module })
    end
  end
  table.sort(folder.files, function(a, b)
    return a.name < b.name
  end)
  return folder.files
end

--- When the folder of a kind was read; nil when it was not yet.
---@param kind 'resources'|'prompts'
---@return integer? ns
function M.read_at(kind)
  return folders[kind].read_at
end

---@param folder mcp-tools.Folder
---@param source string
---@param why string
local function fail(folder, source, why)
  table.insert(folder.failures, { source = source, error = why })
  log.error('%s: %s', source, why)
end

---@param folder mcp-tools.Folder
---@param file mcp-tools.BundledFile
---@return table? definition
local function load(folder, file)
  local ok, def = xpcall(require, debug.traceback, file.module)
  if ok and type(def) == 'table' and def.name == file.name then
    return def
  end
  local why = not ok and def
    or type(def) ~= 'table' and 'it returns no table'
    or ("its definition is named '%s', its path says '%s'"):format(tostring(def.name), file.name)
  fail(folder, file.module, tostring(why))
end

---@param registry mcp-tools.Registry
---@param kind 'resources'|'prompts'
---@param option boolean|string[]
local function apply(registry, kind, option)
  local folder, door = folders[kind], KINDS[kind]
  folder.applied, folder.failures = option, {}
  local wanted, known = {}, {}
  for _, name in ipairs(type(option) == 'table' and option or {}) do
    wanted[name] = true
  end
  local stale = folder.ours
  folder.ours = {}
  for _, file in ipairs(option == false and {} or M.files(kind)) do
    known[file.name] = true
    local def = (option == true or wanted[file.name]) and load(folder, file)
    -- What somebody else registered in its place stays.
    if def and stale[file.name] then
      folder.ours[file.name] = stale[file.name]
    elseif def and not door.has(registry, def) then
      local normalised, fault = door.add(registry, def, { origin = 'bundled' })
      if normalised then
        folder.ours[file.name] = normalised.key
      else
        log.error('%s', fault) -- the registry keeps it for health
      end
    end
  end
  for name, key in pairs(stale) do
    if not folder.ours[name] then
      door.remove(registry, key)
    end
  end
  for name in vim.spairs(wanted) do
    if not known[name] then
      fail(folder, ('setup{%s}'):format(kind), ("there is none named '%s'"):format(name))
    end
  end
end

--- Makes the registry hold what the options say: adds what is new, takes out what is no longer named.
---@param registry mcp-tools.Registry
function M.sync(registry)
  local options = config.get()
  for kind, folder in pairs(folders) do
    if folder.applied ~= options[kind] then
      apply(registry, kind, options[kind])
    end
  end
end

--- Files that could not be loaded, and names that no file has.
---@return { source: string, error: string }[]
function M.failures()
  local list = {}
  for _, folder in vim.spairs(folders) do
    vim.list_extend(list, folder.failures)
  end
  return list
end

return M
