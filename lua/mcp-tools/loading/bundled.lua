--- What is bundled: hands the definitions of tools, resources and prompts to the registry, by the same door as
--- everyone's, a few at a time.

local Registrations = require('mcp-tools.registry.registrations')
local bundled_files = require('mcp-tools.loading.bundled_files')
local config = require('mcp-tools.config')
local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')
local selection = require('mcp-tools.loading.selection')

local M = {}

---@class mcp-tools.Folder what is known of one folder
---@field applied any the option that is in force; `Folder` itself before the first time
---@field ours mcp-tools.Registrations what was put into the registry
---@field keys table<string, string> name → its key there
---@field failures table<string, string> where → why it could not be loaded
---@field pass mcp-tools.Pass? while something is left to load

---@type table<mcp-tools.OfferKind, mcp-tools.Folder>
local folders = {}
for _, kind in ipairs(kinds.options()) do
  local folder = { ours = Registrations.new(kind), keys = {}, failures = {} }
  folder.applied = folder
  folders[kind] = folder
end

---@class mcp-tools.Candidate what an option asks for, and is not in the registry yet
---@field name string
---@field where string
---@field file mcp-tools.BundledFile? that it is loaded from
---@field def table? nil until it is loaded
---@field source mcp-tools.Source

--- What an option asks for: files, and what stands in the option itself. No file is loaded.
---@param kind mcp-tools.OfferKind
---@return mcp-tools.Candidate[]
local function candidates(kind)
  local asked, list = selection.selection(kind), {}
  for _, file in ipairs(#asked.names > 0 and bundled_files.of(kind) or {}) do
    local verdict = selection.verdict(kind, file.name, file.group)
    if verdict == true or verdict == 'recommended' and bundled_files.is_recommended(file) then
      local source = { origin = 'bundled', group = file.group }
      table.insert(list, { name = file.name, where = file.module, file = file, source = source })
    end
  end
  for i, def in ipairs(asked.definitions) do
    local where, source = ('setup{%s}[%d]'):format(kind, i), { origin = 'registered' }
    table.insert(list, { name = tostring(def.name), where = where, def = def, source = source })
  end
  return list
end

--- A look at what an option asks for, which goes on until all of it is in the registry.
---@class mcp-tools.Pass
---@field todo mcp-tools.Candidate[] the last comes next
---@field kept table<string, true> keys that stay
---@field keys table<string, string> what was known before
---@field failures table<string, string>

--- Begins to make the registry hold what the option of a kind asks for. What somebody else has registered stays; what
--- fails stays as it was.
---@param kind mcp-tools.OfferKind
local function begin(kind)
  local folder, list = folders[kind], candidates(kind)
  local before = folder.pass or { keys = {}, failures = {} }
  folder.applied = config.get()[kind]
  folder.pass = {
    todo = vim.iter(list):rev():totable(),
    kept = {},
    keys = vim.tbl_extend('force', before.keys, folder.keys),
    failures = vim.tbl_extend('force', before.failures, folder.failures),
  }
  folder.keys, folder.failures = {}, {}
end

--- What a file gives; nothing when it is not one of those that are asked for.
---@param kind mcp-tools.OfferKind
---@param each mcp-tools.Candidate
---@return table? def
---@return string? fault
local function definition_of(kind, each)
  if not each.file then
    return each.def
  end
  local def, fault = bundled_files.load(each.file)
  if not def then
    return nil, fault
  elseif def.explicit and not selection.selection(kind).on[each.name] then
    return nil
  end
  return def
end

--- Puts one of those that are asked for into the registry.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.OfferKind
---@param each mcp-tools.Candidate
local function take(registry, kind, each)
  local folder = folders[kind]
  local pass = folder.pass --[[@as mcp-tools.Pass]]
  local ok, key, fault = log.guard(each.where, function() -- a definition may throw when it is read
    local def, fault = definition_of(kind, each)
    if def and not folder.ours:taken_by(registry, def) then
      return folder.ours:add(registry, def, each.source)
    end
    return nil, fault
  end)
  if not ok then
    key, fault = nil, tostring(key):match('^[^\n]*')
  end
  key = key or fault and pass.keys[each.name]
  if key then
    folder.keys[each.name], pass.kept[key] = key, true
  end
  folder.failures[each.where] = fault
  if fault and pass.failures[each.where] ~= fault then
    log.error('%s could not be loaded: %s', each.where, fault)
  end
end

--- Takes the next one; after the last, what is no longer asked for goes.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.OfferKind
local function step(registry, kind)
  local folder = folders[kind]
  local pass = folder.pass --[[@as mcp-tools.Pass]]
  local each = table.remove(pass.todo)
  if each then
    take(registry, kind, each)
  elseif folder.pass == pass then
    folder.pass = nil
    folder.ours:keep(registry, pass.kept)
  end
end

--- Looks whether the options are others than last time; what they ask for is then to be loaded.
---@return boolean changed
function M.sync()
  local options, changed = config.get(), false
  for kind, folder in pairs(folders) do
    if folder.applied ~= options[kind] then
      begin(kind)
      changed = true
    end
  end
  return changed
end

--- Is something that the options ask for not in the registry yet?
---@param kind? mcp-tools.OfferKind any when left out
---@return boolean
function M.is_pending(kind)
  for each, folder in pairs(folders) do
    if folder.pass and (kind == nil or each == kind) then
      return true
    end
  end
  return false
end

--- Goes on with loading for a while.
---@param registry mcp-tools.Registry
---@param ns integer
---@return boolean more there is still something to load
function M.load_some(registry, ns)
  local stop = vim.uv.hrtime() + ns
  for kind, folder in pairs(folders) do
    while folder.pass do
      step(registry, kind)
      if vim.uv.hrtime() > stop then
        return M.is_pending()
      end
    end
  end
  return false
end

--- Loads what is left of a kind, or of all.
---@param registry mcp-tools.Registry
---@param kind? mcp-tools.OfferKind
function M.load_all(registry, kind)
  for each, folder in pairs(folders) do
    while folder.pass and (kind == nil or each == kind) do
      step(registry, each)
    end
  end
end

--- Loads one thing now, if it is asked for and was not loaded yet.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.OfferKind
---@param name string
function M.load_one(registry, kind, name)
  local todo = folders[kind].pass and folders[kind].pass.todo or {}
  for i, each in ipairs(todo) do
    if each.name == name then
      return take(registry, kind, table.remove(todo, i))
    end
  end
end

--- Loads files again, and finds new ones.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.OfferKind
---@param wanted fun(group: string?, name: string): boolean
function M.reload(registry, kind, wanted)
  bundled_files.forget(kind)
  for _, file in ipairs(bundled_files.of(kind)) do
    if wanted(file.group, file.name) then
      package.loaded[file.module] = nil
    end
  end
  begin(kind)
  M.load_all(registry, kind)
end

--- Files that could not be loaded.
---@return mcp-tools.Failure[]
function M.failures()
  local list = {}
  for _, folder in vim.spairs(folders) do
    for module, why in vim.spairs(folder.failures) do
      table.insert(list, { source = module, error = why })
    end
  end
  return list
end

return M
