--- Encodes Lua values as compact JSON, or reports the path of a value that cannot be encoded.
---
--- Unlike `vim.json.encode`, it writes all digits of every number. Nearly all values are encoded by `quick`, in a third
--- of the time of vim.json. `write` encodes the others, after `walk` has looked for what cannot be encoded.

local buffer = require('mcp-tools.util.optional').load('string.buffer') -- not in every LuaJIT 2.1
local errors = require('mcp-tools.errors')
local number = require('mcp-tools.util.canonical_json').number

local M = {}

--- Maximum nesting that every client can parse.
local MAX_DEPTH = 100
--- Maximum number of keys of a path in an error.
local MAX_PATH = 12
--- Maximum number of holes in a list, as in vim.json; each is written as null.
local SPARSE_SAFE, SPARSE_RATIO = 10, 2

--- The string buffer writes integers below it with all digits.
local MAX_INTEGER = 1e14
--- Maximum size of a string that `quick` checks; vim.json is as fast with longer ones.
local SHORT = 64
--- A longer string would be copied into the buffer, and the buffer freed after it.
local LONG = 32 * 1024
--- Maximum number of cached field names; most results share a few.
local MAX_NAMES = 256
--- Maximum number of keys of one object that are sorted: more would block the main thread.
local MAX_SORTED = 5000
--- Maximum size of the buffer between two values, in bytes.
local KEPT = 256 * 1024

local NIL, EMPTY_DICT = vim.NIL, getmetatable(vim.empty_dict())
local byte, floor, huge = string.byte, math.floor, math.huge

local json_encode = vim.json.encode
if json_encode('/') ~= '"/"' then
  -- 0.10 writes `/` as `\/`, which is valid but hard to read in a path.
  json_encode = function(value)
    return (vim.json.encode(value):gsub('\\/', '/'))
  end
end

--- Characters that vim.json escapes.
local ESCAPED = {}
for code = 0, 127 do
  local char = string.char(code)
  ESCAPED[code] = json_encode(char) ~= '"' .. char .. '"' or nil
end

local out = buffer and buffer.new()
local quick

---@param text string
local function quick_string(text)
  local length = #text
  if length > SHORT then
    return out:put(json_encode(text))
  end
  for i = 1, length do
    if ESCAPED[byte(text, i)] then
      return out:put(json_encode(text))
    end
  end
  out:put('"', text, '"')
end

local names, name_count = {}, 0

---@param key string
---@return string text with quotes and colon
local function keep_name(key)
  if name_count >= MAX_NAMES then
    names, name_count = {}, 0
  end
  names[key], name_count = json_encode(key) .. ':', name_count + 1
  return names[key]
end

---@param list table
---@param length integer
---@param depth integer
---@return boolean written
local function quick_list(list, length, depth)
  local keys = 0
  for _ in pairs(list) do
    keys = keys + 1
  end
  if keys ~= length then
    return false -- holes or string keys
  end
  out:put('[')
  for i = 1, length do
    if i > 1 then
      out:put(',')
    end
    if not quick(list[i], depth) then
      return false
    end
  end
  out:put(']')
  return true
end

--- Keys of the last object at each depth, sorted: the objects of a list mostly have the same.
---@type table<integer, string[]>
local orders = {}

--- Returns the keys of an object, sorted, so that equal values have equal texts in every Neovim: the order of `pairs`
--- changes from start to start, and prompt caches compare bytes.
---@param value table
---@param depth integer
---@return string[]? keys nil if one is not a string
local function sorted_keys(value, depth)
  local count, last = 0, orders[depth] or {}
  for key in pairs(value) do
    if type(key) ~= 'string' then
      return nil
    end
    count = count + 1
  end
  local is_same = count == #last
  for i = 1, is_same and count or 0 do
    is_same = is_same and value[last[i]] ~= nil
  end
  if not is_same then
    last = vim.tbl_keys(value)
    if count <= MAX_SORTED then
      table.sort(last)
    end
    orders[depth] = last
  end
  return last
end

---@param value table
---@param depth integer
---@return boolean written
local function quick_table(value, depth)
  if depth > MAX_DEPTH then
    return false
  end
  local meta = getmetatable(value)
  if meta ~= nil then
    return meta == EMPTY_DICT and next(value) == nil and out:put('{}') ~= nil
  end
  local length = #value
  if length > 0 then
    return quick_list(value, length, depth)
  end
  local keys = sorted_keys(value, depth)
  if not keys then
    return false
  end
  for i = 1, #keys do
    out:put(i == 1 and '{' or ',', names[keys[i]] or keep_name(keys[i]))
    if not quick(value[keys[i]], depth) then
      return false
    end
  end
  out:put(keys[1] and '}' or '[]')
  return true
end

--- Appends the text of a value that vim.json encodes correctly to `out`.
---@param value any
---@param depth integer
---@return boolean written
quick = function(value, depth)
  local kind = type(value)
  if kind == 'string' and #value <= LONG then
    quick_string(value)
  elseif kind == 'number' and value < MAX_INTEGER and value > -MAX_INTEGER and value == floor(value) then
    out:put(value)
  elseif kind == 'number' and value - value == 0 then -- finite
    out:put(number(value))
  elseif kind == 'table' then
    return quick_table(value, depth + 1)
  elseif kind == 'boolean' then
    out:put(value and 'true' or 'false')
  elseif value == NIL then
    out:put('null')
  else
    return false
  end
  return true
end

---@class mcp-tools.Survey
---@field path any[] keys from the root to the fault, outermost first
---@field seen table<table, true> tables on the way down
---@field fault string?

--- Checks a value; stops at the first part that JSON cannot represent.
---@param survey mcp-tools.Survey
---@param value any
---@param depth integer
---@return boolean ok
local function walk(survey, value, depth)
  local kind = type(value)
  if kind == 'string' or kind == 'boolean' or kind == 'nil' or value == NIL then
    return true
  end
  if kind == 'number' then
    if value ~= value or value == huge or value == -huge then
      survey.fault = 'not a finite number'
      return false
    end
    return true
  end
  if kind ~= 'table' then
    survey.fault = kind == 'userdata' and 'userdata cannot be sent' or 'a ' .. kind .. ' cannot be sent'
    return false
  end
  if survey.seen[value] then
    survey.fault = 'a table that contains itself'
    return false
  end
  if depth > MAX_DEPTH then
    survey.fault = 'nested deeper than ' .. MAX_DEPTH .. ' levels'
    return false
  end
  survey.seen[value] = true
  local path, named, numbered, max = survey.path, false, 0, 0
  for key, item in pairs(value) do
    local key_kind = type(key)
    if key_kind == 'number' then
      numbered = numbered + 1
      max = key > max and key or max
    elseif key_kind == 'string' then
      named = true
    else
      path[depth] = tostring(key)
      survey.fault = 'a ' .. key_kind .. ' as a key'
      return false
    end
    path[depth] = key
    if not walk(survey, item, depth + 1) then
      return false
    end
    path[depth] = nil
  end
  if max > SPARSE_SAFE and max > SPARSE_RATIO * numbered and not named then
    survey.fault = ('a list of %d items with index %s: too many holes'):format(numbered, max)
    return false
  end
  if numbered > 0 and named then
    for key in pairs(value) do
      if type(key) == 'number' and rawget(value, tostring(key)) ~= nil then
        path[depth] = key
        survey.fault = ('both the number %s and the string "%s" are keys'):format(key, key)
        return false
      end
    end
  end
  survey.seen[value] = nil
  return true
end

--- Formats a path for messages: `result.lines[3].text`.
---@param root string
---@param keys any[]
---@return string
function M.path(root, keys)
  local parts = { root }
  for i, key in ipairs(keys) do
    if i > MAX_PATH then
      parts[#parts + 1] = ('… (%d more)'):format(#keys - MAX_PATH)
      break
    end
    parts[#parts + 1] = type(key) == 'number' and ('[%s]'):format(key) or '.' .. key
  end
  return table.concat(parts)
end

local write

--- Returns the array length that vim.json would use, or nil if it would write an object.
local function array_length(value)
  if getmetatable(value) == EMPTY_DICT then
    return nil
  end
  local max = 0
  for key in pairs(value) do
    if type(key) ~= 'number' or key < 1 or key ~= floor(key) then
      return nil
    end
    max = key > max and key or max
  end
  return max
end

local function write_table(parts, value)
  local length = array_length(value)
  if length then
    parts[#parts + 1] = '['
    for i = 1, length do
      parts[#parts + 1] = i > 1 and ',' or nil
      write(parts, value[i])
    end
    parts[#parts + 1] = ']'
    return
  end
  parts[#parts + 1] = '{'
  local first = true
  for key, item in pairs(value) do
    parts[#parts + 1] = (first and '' or ',') .. json_encode(tostring(key)) .. ':'
    first = false
    write(parts, item)
  end
  parts[#parts + 1] = '}'
end

write = function(parts, value)
  if type(value) == 'number' then
    parts[#parts + 1] = number(value)
  elseif type(value) == 'table' then
    write_table(parts, value)
  else
    parts[#parts + 1] = value == nil and 'null' or json_encode(value)
  end
end

--- Returns the compact JSON of a value.
---@param value any `{}` is `[]` unless it is `vim.empty_dict()`; holes are nulls; mixed tables become objects
---@param root? string name of the value in errors (default: "result")
---@return string? text
---@return mcp-tools.Error? err `not_serializable`, naming the path
function M.encode(value, root)
  if out and type(value) == 'table' then
    out:reset()
    if quick(value, 0) then
      local text = out:get()
      if #text > KEPT then
        out:free()
      end
      return text
    end
  end
  local survey = { path = {}, seen = {} }
  if not walk(survey, value, 1) then
    local path = M.path(root or 'result', survey.path)
    return nil, errors.new('not_serializable', ('%s: %s'):format(path, survey.fault))
  end
  local parts = {}
  write(parts, value)
  return table.concat(parts)
end

return M
