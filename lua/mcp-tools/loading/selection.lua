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
---@field mounts table[]

--- Groups of guill/mcp-tools.nvim → ours.
local OLD_GROUPS = { lsp = { 'symbol', 'code' }, dap = { 'debug' }, interview = { 'ask_user' } }

---@param option any
---@return mcp-tools.OptionSelection
local function parse(option)
  local out = { names = {}, on = {}, off = {}, definitions = {}, mounts = {} }
  if option == true then
    option = 'all'
  end
  if type(option) ~= 'table' then
    option = { option or nil }
  end
  local keyed = {}
  for name, value in pairs(option) do
    if type(name) == 'string' and value == true then
      table.insert(keyed, name)
    elseif type(name) == 'string' and value == false then
      out.off[name] = true
    end
  end
  table.sort(keyed)
  for _, item in ipairs(option) do
    if type(item) == 'table' then
      table.insert(item.command == nil and item.url == nil and out.definitions or out.mounts, item)
    elseif item then
      table.insert(out.names, item == true and 'all' or item)
    end
  end
  vim.list_extend(out.names, keyed)
  local function expanded(names)
    return vim
      .iter(names)
      :map(function(name)
        return OLD_GROUPS[name] or name
      end)
      :flatten()
      :totable()
  end
  out.names = expanded(out.names)
  for _, name in ipairs(out.names) do
    out.on[name] = true
  end
  for _, name in ipairs(expanded(vim.tbl_keys(out.off))) do
    out.off[name] = true
  end
  return out
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
