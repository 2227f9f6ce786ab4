--- The options `tools`, `resources` and `prompts`: parses them, and switches definitions on and off.

local config = require('mcp-tools.config')
local kinds = require('mcp-tools.registry.kinds')
local source = require('mcp-tools.registry.source')

local M = {}

---@class mcp-tools.OptionSelection a parsed option
---@field names string[] ordered
---@field on table<string, true> the same names
---@field off table<string, true>
---@field definitions table[]

--- Groups of guill/mcp-tools.nvim → ours.
local OLD_GROUPS = { lsp = { 'symbol', 'code' }, dap = { 'debug' }, interview = { 'ask_user' } }

--- Replaces names of old groups.
---@param names string[]
---@return string[] list
---@return table<string, true> set
local function expanded(names)
  local list, set = {}, {}
  for _, name in ipairs(names) do
    for _, each in ipairs(OLD_GROUPS[name] or { name }) do
      table.insert(list, each)
      set[each] = true
    end
  end
  return list, set
end

---@param option any
---@return mcp-tools.OptionSelection
local function parse(option)
  local definitions, names, keyed, off = {}, {}, {}, {}
  option = option == true and 'all' or option
  option = type(option) == 'table' and option or { option or nil }
  for name, value in pairs(option) do
    if type(name) == 'string' and type(value) == 'boolean' then
      table.insert(value and keyed or off, name)
    end
  end
  table.sort(keyed)
  for _, item in ipairs(option) do
    if type(item) ~= 'table' then
      table.insert(names, item == true and 'all' or item or nil)
    elseif item.command == nil and item.url == nil then -- not a mount
      table.insert(definitions, item)
    end
  end
  local list, on = expanded(vim.list_extend(names, keyed))
  return { names = list, on = on, off = select(2, expanded(off)), definitions = definitions }
end

---@type table<mcp-tools.KindOption, { option: any, selection: mcp-tools.OptionSelection }>
local cache = {}

--- Returns the parsed option of a kind.
---@param kind mcp-tools.KindOption
---@return mcp-tools.OptionSelection
function M.selection(kind)
  local option = config.get()[kind]
  if not cache[kind] or cache[kind].option ~= option then
    cache[kind] = { option = option, selection = parse(option) }
  end
  return cache[kind].selection
end

--- Returns whether the option of a kind switches nothing on.
---@param kind mcp-tools.KindOption
---@return boolean
function M.is_empty(kind)
  local selection = M.selection(kind)
  return #selection.names + #selection.definitions == 0
end

--- Returns whether the option switches a definition on or off. Its name takes precedence over its group, and its group
--- over "all".
---@param kind mcp-tools.KindOption
---@param name string
---@param group? string
---@return boolean|'recommended'|nil verdict nil if the option does not apply to it
function M.verdict(kind, name, group)
  local selection = M.selection(kind)
  local on, off = selection.on, selection.off
  if off[name] then
    return false
  elseif on[name] then
    return true
  elseif group and off[group] then
    return false
  elseif on.all or group and on[group] then
    return true
  end
  return on.recommended and 'recommended' or nil
end

--- Returns whether a registered definition is switched off.
---@param kind mcp-tools.KindOption
---@param entry table normalized definition
---@return boolean
function M.is_off(kind, entry)
  return M.verdict(kind, entry.name, kinds.row(kind).grouped and source.group(entry) or nil) == false
end

--- Switches a name on or off. For a group, also switches members whose own setting is the opposite.
---@param kind mcp-tools.KindOption
---@param name string
---@param on boolean
---@param members string[]
function M.switch(kind, name, on, members)
  local selection = M.selection(kind)
  local against = on and selection.off or selection.on
  local change = { [name] = on }
  for _, member in ipairs(members) do
    if against[member] then
      change[member] = on
    end
  end
  config.change({ [kind] = change })
end

return M
