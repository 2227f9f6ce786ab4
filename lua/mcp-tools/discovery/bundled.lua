--- What is bundled: finds the files of tools, resources and prompts and hands them to the registry, by the same door as
--- everyone's.
---
--- Receives: what the options ask for (discovery/selection.lua).
--- Sends: definitions to the registry.
--- Does not know about: any of them. A file `tools/<group>/<name>.lua` returns one definition named `<group>_<name>`, a
--- file `tools/<name>.lua` one that is a group of its own; resources/ and prompts/ likewise, without groups.

local Holder = require('mcp-tools.registry.holder')
local config = require('mcp-tools.config')
local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')
local project = require('mcp-tools.files.project')
local selection = require('mcp-tools.discovery.selection')

local M = {}

---@class mcp-tools.BundledFile
---@field name string
---@field group string? of tools
---@field module string

---@class mcp-tools.Folder what is known of one folder
---@field files mcp-tools.BundledFile[]?
---@field read_at integer? ns, when the folder was read
---@field applied any the option that is in force; `Folder` itself before the first time
---@field ours mcp-tools.Holder what was put into the registry
---@field keys table<string, string> name → its key there
---@field failures table<string, string> where → why it could not be loaded

---@type table<mcp-tools.OfferKind, mcp-tools.Folder>
local folders = {}
for _, kind in ipairs(kinds.options()) do
  local folder = { ours = Holder.new(kind), keys = {}, failures = {} }
  folder.applied = folder
  folders[kind] = folder
end

--- Every bundled file of a kind; the folder is read once.
---@param kind mcp-tools.OfferKind
---@return mcp-tools.BundledFile[]
function M.files(kind)
  local folder = folders[kind]
  if folder.files then
    return folder.files
  end
  folder.files, folder.read_at = {}, vim.uv.hrtime()
  local folder_path = vim.fs.joinpath(project.plugin_dir(), 'lua', 'mcp-tools', kind)
  for path, type_ in vim.fs.dir(folder_path, { depth = 2 }) do
    local stem = path:match('^(.*)%.lua$')
    if type_ ~= 'directory' and stem then
      table.insert(folder.files, {
        name = (stem:gsub('/', '_')),
        group = kinds.row(kind).grouped and (stem:match('^([^/]+)/') or stem) or nil,
        module = ('mcp-tools.%s.%s'):format(kind, (stem:gsub('/', '.'))),
      })
    end
  end
  table.sort(folder.files, function(a, b)
    return a.name < b.name
  end)
  return folder.files
end

--- When the folder of a kind was read; nil when it was not yet.
---@param kind mcp-tools.OfferKind
---@return integer? ns
function M.read_at(kind)
  return folders[kind].read_at
end

---@param file mcp-tools.BundledFile
---@return table? definition
---@return string? fault
local function load(file)
  local ok, def = xpcall(require, debug.traceback, file.module)
  if not ok then
    return nil, tostring(def)
  elseif type(def) ~= 'table' then
    return nil, 'it returns no table'
  elseif def.name ~= file.name then
    return nil, ("its definition is named '%s', its path says '%s'"):format(tostring(def.name), file.name)
  end
  return def
end

---@class mcp-tools.Candidate what an option may ask for
---@field name string
---@field where string
---@field def table? nil: it is not asked for, or could not be loaded
---@field fault string? why it could not be
---@field source mcp-tools.Source

--- What stands in the files and in the option itself, loaded as far as it is asked for.
---@param kind mcp-tools.OfferKind
---@return mcp-tools.Candidate[]
local function candidates(kind)
  local asked, list = selection.selection(kind), {}
  for _, file in ipairs(#asked.names > 0 and M.files(kind) or {}) do
    local verdict, def, fault = selection.verdict(kind, file.name, file.group), nil, nil
    if verdict then
      def, fault = load(file)
    end
    if def and verdict == 'recommended' and not def.recommended then
      def = nil
    end
    local source = { origin = 'bundled', group = file.group }
    table.insert(list, { name = file.name, where = file.module, def = def, fault = fault, source = source })
  end
  for i, def in ipairs(asked.definitions) do
    local where = ('setup{%s}[%d]'):format(kind, i)
    table.insert(list, { name = tostring(def.name), where = where, def = def, source = { origin = 'registered' } })
  end
  return list
end

--- Makes the registry hold what the option of a kind asks for. What somebody else has registered stays; what fails
--- stays as it was.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.OfferKind
local function apply(registry, kind)
  local folder, kept = folders[kind], {}
  folder.applied = config.get()[kind] -- first of all: what is loaded may use the registry, and come by here again
  local list = candidates(kind)
  local known_keys, known_failures = folder.keys, folder.failures
  folder.keys, folder.failures = {}, {}
  for _, each in ipairs(list) do
    local key, fault = nil, each.fault
    if each.def and not folder.ours:taken_by(registry, each.def) then
      key, fault = folder.ours:add(registry, each.def, each.source)
    end
    key = key or fault and known_keys[each.name]
    if key then
      folder.keys[each.name], kept[key] = key, true
    end
    folder.failures[each.where] = fault
    if fault and known_failures[each.where] ~= fault then
      log.error('%s could not be loaded: %s', each.where, fault)
    end
  end
  folder.ours:keep(registry, kept)
  if #selection.selection(kind).mounts > 0 then
    log.warn('setup{%s}: mounted servers are not there yet', kind)
  end
end

--- Makes the registry hold what the options ask for: adds what is new, takes out what is no longer wanted.
---@param registry mcp-tools.Registry
---@return boolean changed the options are others than last time
function M.sync(registry)
  local options, changed = config.get(), false
  for kind, folder in pairs(folders) do
    if folder.applied ~= options[kind] then
      apply(registry, kind)
      changed = true
    end
  end
  return changed
end

--- Loads files again, and finds new ones.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.OfferKind
---@param wanted fun(group: string?, name: string): boolean
function M.reload(registry, kind, wanted)
  folders[kind].files = nil
  for _, file in ipairs(M.files(kind)) do
    if wanted(file.group, file.name) then
      package.loaded[file.module] = nil
    end
  end
  apply(registry, kind)
end

--- Names in the options that no file has; somebody may have registered one.
---@return mcp-tools.Mistyped[]
function M.unknown()
  local list = {}
  for kind in vim.spairs(folders) do
    local known = { all = true, recommended = kinds.row(kind).grouped }
    local wanted = selection.selection(kind)
    for _, file in ipairs(#wanted.names > 0 and M.files(kind) or {}) do
      known[file.name], known[file.group or file.name] = true, true
    end
    for _, name in ipairs(wanted.names) do
      if not known[name] then
        -- Start-up cost: it is needed for mistakes only.
        local near = require('mcp-tools.util.suggest')(name, vim.tbl_keys(known))
        table.insert(list, { option = kind, name = name, near = near })
      end
    end
  end
  return list
end

--- Files that could not be loaded, and names in the options that nothing has.
---@param is_known fun(kind: mcp-tools.OfferKind, name: string): boolean is a name that no file has one all the same?
---@return mcp-tools.Failure[]
function M.failures(is_known)
  local list = {}
  for _, folder in vim.spairs(folders) do
    for module, why in vim.spairs(folder.failures) do
      table.insert(list, { source = module, error = why })
    end
  end
  for _, item in ipairs(M.unknown()) do
    if not is_known(item.option, item.name) then
      local what = kinds.row(item.option).grouped and "there is no group or tool '%s'" or "there is none named '%s'"
      local near = item.near and ("; did you mean '%s'?"):format(item.near) or ''
      table.insert(list, { source = ('setup{%s}'):format(item.option), error = what:format(item.name) .. near })
    end
  end
  return list
end

return M
