--- JSON values in Lua: their types, equality, copies, and text for messages.
---
--- Null is `vim.NIL`. An empty object from JSON has `vim.empty_dict()`'s metatable; from Lua, an empty table can be an
--- array or an object.

local utf8 = require('mcp-tools.util.utf8')

local M = {}

local NIL = vim.NIL
local EMPTY_DICT = getmetatable(vim.empty_dict())
local floor, huge = math.floor, math.huge

--- Whether a plain empty table can only be an array, as in values from JSON. A field instead of an argument:
--- `Compiler:begin` sets it for each run, and a run never yields.
M.strict = false

--- Maximum length of one value in a message.
local MAX_SHOWN = 80
--- Maximum number of values in one message.
local MAX_LISTED = 50

local islist = vim.islist

--- Returns whether a non-empty table is an array: all keys are 1..n.
local function holds_list(value)
  local n = #value
  if n == 0 then
    return false
  end
  -- Nearly always the list is in the array part of the table: then no key follows the last item.
  return next(value, n) == nil or islist(value)
end

---@param value any
---@return boolean
function M.is_array(value)
  if type(value) ~= 'table' then
    return false
  end
  if next(value) == nil then
    return getmetatable(value) ~= EMPTY_DICT
  end
  return holds_list(value)
end

---@param value any
---@return boolean
function M.is_object(value)
  if type(value) ~= 'table' then
    return false
  end
  local key = next(value)
  if key == nil then
    return not M.strict or getmetatable(value) == EMPTY_DICT
  end
  return type(key) == 'string' or not holds_list(value)
end

---@param value any
---@return boolean
function M.is_integer(value)
  return type(value) == 'number' and floor(value) == value and value ~= huge and value ~= -huge
end

---@type table<string, fun(v: any): boolean>
M.is_of_type = {
  string = function(v)
    return type(v) == 'string'
  end,
  number = function(v)
    return type(v) == 'number'
  end,
  boolean = function(v)
    return type(v) == 'boolean'
  end,
  null = function(v)
    return v == NIL
  end,
  integer = M.is_integer,
  array = M.is_array,
  object = M.is_object,
}

--- Returns whether a value is a list of strings.
---@param value any
---@return boolean
function M.is_strings(value)
  return type(value) == 'table'
    and (next(value) == nil or vim.islist(value) and vim.iter(value):all(M.is_of_type.string))
end

---@param types string[]
---@param v any
---@return boolean
function M.is_one_of(types, v)
  for i = 1, #types do
    if M.is_of_type[types[i]](v) then
      return true
    end
  end
  return false
end

--- Returns the JSON type of a value.
---@param value any
---@return string
function M.kind(value)
  local kind = type(value)
  if value == NIL or kind == 'nil' then
    return 'null'
  end
  if kind == 'table' then
    return M.is_array(value) and 'array' or 'object'
  end
  return kind
end

--- JSON equality: numbers by value, objects without order.
---@param a any
---@param b any
---@return boolean
local function equal(a, b)
  if a == b then
    return true
  end
  if type(a) ~= 'table' or type(b) ~= 'table' then
    return false
  end
  if next(a) == nil or next(b) == nil then
    if next(a) ~= next(b) then
      return false
    end
    return not M.strict or getmetatable(a) == getmetatable(b)
  end
  for key, item in pairs(a) do
    if b[key] == nil or not equal(item, b[key]) then
      return false
    end
  end
  for key in pairs(b) do
    if a[key] == nil then
      return false
    end
  end
  return true
end
M.equal = equal

--- Returns the length in code points.
---@param text string
---@return integer
function M.length(text)
  if not text:find('[\128-\255]') then
    return #text
  end
  local _, continuing = text:gsub('[\128-\191]', '')
  return #text - continuing
end

--- Formats a value as JSON for a message, cut if long.
---@param value any
---@return string
function M.show(value)
  local ok, text = pcall(vim.json.encode, value)
  if not ok then
    return '<' .. type(value) .. '>'
  end
  return utf8.cut((text:gsub('\\/', '/')), MAX_SHOWN)
end

--- Describes a value for a message: numbers with their value, other values by type.
---@param value any
---@return string
function M.describe(value)
  return type(value) == 'number' and M.show(value) or M.kind(value)
end

--- Formats values for a message: `"a", "b", 3`.
---@param values any[]
---@return string
function M.show_list(values)
  local shown = {}
  for i = 1, math.min(#values, MAX_LISTED) do
    shown[i] = M.show(values[i])
  end
  if #values > MAX_LISTED then
    shown[#shown + 1] = ('… (%d in total)'):format(#values)
  end
  return table.concat(shown, ', ')
end

--- Returns the names of an object, sorted, so that messages are stable.
---@param object table
---@return any[]
function M.names(object)
  local names = vim.tbl_keys(object)
  table.sort(names, function(a, b)
    return tostring(a) < tostring(b)
  end)
  return names
end

--- Maximum depth of JSON, and maximum number of tables in which an empty one is searched.
local MAX_LEVELS, MAX_SEARCHED = 128, 10000

---@param value table
---@param left integer
---@param level integer
---@return boolean found
---@return integer left
local function has_empty(value, left, level)
  if left <= 0 or next(value) == nil then
    return getmetatable(value) ~= EMPTY_DICT, left
  end
  for _, item in pairs(value) do
    if type(item) == 'table' and level < MAX_LEVELS then
      local found
      found, left = has_empty(item, left - 1, level + 1)
      if found then
        return true, left
      end
    end
  end
  return false, left
end

--- Returns whether a value contains an empty table that could be an array or an object. True for large values.
---@param value any
---@return boolean
function M.is_ambiguous(value)
  return type(value) == 'table' and (has_empty(value, MAX_SEARCHED, 1))
end

---@param value any
---@param above table<table, table> tables that contain this one → their copies
---@param level integer
local function copy_of(value, above, level)
  if type(value) ~= 'table' or level > MAX_LEVELS then
    return value
  elseif above[value] then
    return above[value]
  end
  local copy = getmetatable(value) == EMPTY_DICT and vim.empty_dict() or {}
  above[value] = copy
  for key, item in pairs(value) do
    copy[key] = copy_of(item, above, level + 1)
  end
  above[value] = nil
  return copy
end

--- Copies a value deeply and keeps the marks of empty objects. Shared tables are copied twice, cycles once; below
--- the maximum depth the original is kept.
---@param value any
---@return any
function M.copy(value)
  return copy_of(value, {}, 1)
end

return M
