--- JSON values as Lua holds them: which kind one is, whether two are equal, how one is shown.
---
--- Null is `vim.NIL`. An empty object from JSON has `vim.empty_dict()`'s metatable; from Lua, an empty table can be an
--- array or an object.

local utf8 = require('mcp-tools.util.utf8')

local M = {}

local NIL = vim.NIL
local EMPTY_DICT = getmetatable(vim.empty_dict())
local floor, huge = math.floor, math.huge

--- Whether a plain empty table is an array only, as it is off the wire. A field, not an argument: `Compiler:begin`
--- sets it for each pass, and nothing yields in between.
M.strict = false

--- Longest text of one value inside a message; more would hide the message.
local MAX_SHOWN = 80
--- Most values named in one message.
local MAX_LISTED = 50

local islist = vim.islist

--- Whether a table with something in it is an array: all keys are 1..n.
local function holds_list(value)
  local n = #value
  if n == 0 then
    return false
  end
  -- Lists are nearly always stored as such: then nothing follows the last item.
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

--- What JSON calls the kind of a value.
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

--- Equality as JSON sees it: numbers by value, objects without order.
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

--- Length in code points: bytes that do not continue a UTF-8 sequence.
---@param text string
---@return integer
function M.length(text)
  if not text:find('[\128-\255]') then
    return #text
  end
  local _, continuing = text:gsub('[\128-\191]', '')
  return #text - continuing
end

--- A value as JSON for a message, cut when long.
---@param value any
---@return string
function M.show(value)
  local ok, text = pcall(vim.json.encode, value)
  if not ok then
    return '<' .. type(value) .. '>'
  end
  return utf8.cut((text:gsub('\\/', '/')), MAX_SHOWN)
end

--- What a value is, for a message: a number itself, else its kind.
---@param value any
---@return string
function M.describe(value)
  return type(value) == 'number' and M.show(value) or M.kind(value)
end

--- Values for a message: `"a", "b", 3`.
---@param values any[]
---@return string
function M.show_list(values)
  local shown = {}
  for i = 1, math.min(#values, MAX_LISTED) do
    shown[i] = M.show(values[i])
  end
  if #values > MAX_LISTED then
    shown[#shown + 1] = ('… (%d in all)'):format(#values)
  end
  return table.concat(shown, ', ')
end

--- The names of an object in order, for messages that come out the same each time.
---@param object table
---@return any[]
function M.names(object)
  local names = vim.tbl_keys(object)
  table.sort(names, function(a, b)
    return tostring(a) < tostring(b)
  end)
  return names
end

--- Tables looked at for an empty one before one is simply assumed; and levels, beyond which nothing is written as JSON.
local MAX_SEARCHED, MAX_LEVELS = 10000, 128

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

--- Whether there is an empty table in a value that does not say whether it is an array or an object. Of large values
--- it says yes.
---@param value any
---@return boolean
function M.is_ambiguous(value)
  return type(value) == 'table' and (has_empty(value, MAX_SEARCHED, 1))
end

---@param value any
---@param above table<table, table> tables that this one stands in → their copies
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

--- A deep copy that keeps which empty tables are objects. A table that stands in two places has two copies; one that
--- stands inside itself has one; one deeper than anything is written stays.
---@param value any
---@return any
function M.copy(value)
  return copy_of(value, {}, 1)
end

return M
