--- Registers bundled definitions, and those in the options `tools`, `resources` and `prompts`, a few at a time.

local Registrations = require('mcp-tools.registry.registrations')
local config = require('mcp-tools.config')
local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local selection = require('mcp-tools.loading.selection')

local M = {}

--- Names of the tools whose definitions set these fields. They are listed here because loading the files takes ten
--- times as long as everything else.
---@type table<'recommended'|'explicit', table<string, true>>
M.named = { recommended = {}, explicit = {} }
for field, names in pairs({
  recommended = 'ask_user change_list change_revert code_actions code_format debug_breakpoints debug_inspect'
    .. ' debug_run debug_step diagnostics_list editor_lookup editor_open editor_quickfix editor_servers'
    .. ' editor_state file_edit file_list file_move file_read file_replace file_save file_search file_write'
    .. ' symbol_callers symbol_delete symbol_find symbol_implementations symbol_info symbol_insert'
    .. ' symbol_overview symbol_references symbol_rename symbol_replace test_run',
  explicit = 'editor_command editor_eval_lua plugin_call',
}) do
  for name in names:gmatch('%S+') do
    M.named[field][name] = true
  end
end

-- Files ---------------------------------------------------------------------------------------------------------------

---@class mcp-tools.BundledFile
---@field name string
---@field group string? of tools
---@field module string
---@field path string

---@type table<mcp-tools.KindOption, mcp-tools.BundledFile[]>
local found = {}

--- Returns every file of a kind; reads the directory once.
---@param kind mcp-tools.KindOption
---@return mcp-tools.BundledFile[] sorted by name
function M.files(kind)
  if found[kind] then
    return found[kind]
  end
  local files = {}
  found[kind] = files
  local dir = vim.fs.joinpath(project.lua_dir(), kind)
  for path, type_ in vim.fs.dir(dir, { depth = 2 }) do
    local stem = path:match('^(.*)%.lua$')
    if type_ ~= 'directory' and stem then
      table.insert(files, {
        name = (stem:gsub('/', '_')),
        group = kinds.row(kind).grouped and (stem:match('^([^/]+)/') or stem) or nil,
        module = ('mcp-tools.%s.%s'):format(kind, (stem:gsub('/', '.'))),
        path = vim.fs.joinpath(dir, path),
      })
    end
  end
  table.sort(files, function(a, b)
    return a.name < b.name
  end)
  return files
end

--- Loads the definition of a file.
---@param file mcp-tools.BundledFile
---@return table? definition
---@return string? fault
local function load(file)
  local ok, def = xpcall(require, debug.traceback, file.module)
  if not ok then
    return nil, tostring(def)
  elseif type(def) ~= 'table' then
    return nil, 'it must return a table'
  elseif def.name ~= file.name then
    return nil, ("its definition is named '%s', but must be named '%s'"):format(tostring(def.name), file.name)
  end
  return def
end

-- Registering ---------------------------------------------------------------------------------------------------------

---@class mcp-tools.OptionState state of one directory and option
---@field applied any value of the option that was applied; the state itself before the first time
---@field ours mcp-tools.Registrations
---@field keys table<string, string> name → key in the registry
---@field failures table<string, string> module or option → fault
---@field pass mcp-tools.Pass? until everything is loaded

---@type table<mcp-tools.KindOption, mcp-tools.OptionState>
local states = {}
for _, kind in ipairs(kinds.options()) do
  local state = { ours = Registrations.new(kind), keys = {}, failures = {} }
  state.applied = state
  states[kind] = state
end

---@class mcp-tools.Candidate a definition that an option requests
---@field name string
---@field where string module or option, for messages
---@field file mcp-tools.BundledFile? to load it from
---@field def table? for a definition in the option
---@field source mcp-tools.Source

--- Returns whether an option requests a bundled definition.
---@param kind mcp-tools.KindOption
---@param name string
---@param group? string of tools
---@return boolean
function M.is_requested(kind, name, group)
  local verdict = selection.verdict(kind, name, group)
  if verdict == true then
    return selection.selection(kind).on[name] == true or not M.named.explicit[name]
  end
  return verdict == 'recommended' and M.named.recommended[name] == true
end

--- Returns what an option requests: bundled files and definitions. Does not load files.
---@param kind mcp-tools.KindOption
---@return mcp-tools.Candidate[]
local function candidates(kind)
  local asked, list = selection.selection(kind), {}
  for _, file in ipairs(#asked.names > 0 and M.files(kind) or {}) do
    if M.is_requested(kind, file.name, file.group) then
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

--- Applying one option, until everything that it requests is registered.
---@class mcp-tools.Pass
---@field todo mcp-tools.Candidate[] the last is next
---@field kept table<string, true> keys that stay
---@field keys table<string, string> keys before
---@field failures table<string, string> failures before

--- Begins to register what the option of a kind requests. Definitions of other owners stay. If a file fails, its
--- earlier definition stays.
---@param kind mcp-tools.KindOption
local function begin(kind)
  local state, list = states[kind], candidates(kind)
  local before = state.pass or { keys = {}, failures = {} }
  state.applied = config.get()[kind]
  state.pass = {
    todo = vim.iter(list):rev():totable(),
    kept = {},
    keys = vim.tbl_extend('force', before.keys, state.keys),
    failures = vim.tbl_extend('force', before.failures, state.failures),
  }
  state.keys, state.failures = {}, {}
end

--- Registers one candidate.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.KindOption
---@param each mcp-tools.Candidate
local function register(registry, kind, each)
  local state = states[kind]
  local pass = state.pass --[[@as mcp-tools.Pass]]
  local ok, key, fault = log.guard(each.where, function() -- reading a definition may throw
    local def, fault = each.def, nil
    if each.file then
      def, fault = load(each.file)
    end
    if def and not state.ours:taken_by(registry, def) then
      return state.ours:add(registry, def, each.source)
    end
    return nil, fault
  end)
  if not ok then
    key, fault = nil, tostring(key):match('^[^\n]*')
  end
  key = key or fault and pass.keys[each.name]
  if key then
    state.keys[each.name], pass.kept[key] = key, true
  end
  state.failures[each.where] = fault
  if fault and pass.failures[each.where] ~= fault then
    log.error('%s could not be loaded: %s', each.where, fault)
  end
end

--- Registers the next candidate; after the last one, removes what is no longer requested.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.KindOption
local function step(registry, kind)
  local state = states[kind]
  local pass = state.pass --[[@as mcp-tools.Pass]]
  local each = table.remove(pass.todo)
  if each then
    register(registry, kind, each)
  elseif state.pass == pass then
    state.pass = nil
    state.ours:keep(registry, pass.kept)
  end
end

--- Checks whether the options have changed, and begins to apply them.
---@return boolean changed
function M.sync()
  local options, changed = config.get(), false
  for kind, state in pairs(states) do
    if state.applied ~= options[kind] then
      begin(kind)
      changed = true
    end
  end
  return changed
end

--- Returns whether definitions that the options request are not yet registered.
---@param kind? mcp-tools.KindOption (default: any)
---@return boolean
function M.is_pending(kind)
  for each, state in pairs(states) do
    if state.pass and (kind == nil or each == kind) then
      return true
    end
  end
  return false
end

--- Continues loading.
---@param registry mcp-tools.Registry
---@param kind? mcp-tools.KindOption (default: all)
---@param ns? number maximum time (default: until everything is loaded)
---@return boolean more false if everything is loaded
function M.load(registry, kind, ns)
  local stop = ns and vim.uv.hrtime() + ns
  for each, state in pairs(states) do
    while state.pass and (kind == nil or each == kind) do
      step(registry, each)
      if stop and vim.uv.hrtime() > stop then
        return M.is_pending()
      end
    end
  end
  return false
end

--- Loads one definition now, if it is requested and not yet loaded.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.KindOption
---@param name string
function M.load_one(registry, kind, name)
  local todo = states[kind].pass and states[kind].pass.todo or {}
  for i, each in ipairs(todo) do
    if each.name == name then
      return register(registry, kind, table.remove(todo, i))
    end
  end
end

--- Loads wanted files again and finds new ones.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.KindOption
---@param wanted fun(group: string?, name: string): boolean
function M.reload(registry, kind, wanted)
  found[kind] = nil -- reads the directory again
  for _, file in ipairs(M.files(kind)) do
    if wanted(file.group, file.name) then
      package.loaded[file.module] = nil
    end
  end
  begin(kind)
  M.load(registry, kind)
end

--- Returns the files and options that could not be loaded.
---@return mcp-tools.Failure[]
function M.failures()
  local list = {}
  for _, state in vim.spairs(states) do
    for module, why in vim.spairs(state.failures) do
      table.insert(list, { source = module, error = why })
    end
  end
  return list
end

return M
