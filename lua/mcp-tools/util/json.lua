--- JSON text of Lua values, exact and checked.
---
--- Receives: any Lua value.
--- Sends: compact JSON text, or an error value that names the path of what cannot be written.
--- Does not know about: results, calls, MCP.
---
--- The text is that of `vim.json.encode`; util/json_fast.lua makes it of values without fault. What vim.json does
--- silently wrong is caught by one walk before it: numbers that need more digits than it prints, a table that holds
--- both `1` and `"1"`, and nesting beyond what clients parse. A value that needs exact numbers is written by `write`
--- below instead.

local json_fast = require('mcp-tools.util.json_fast')
local errors = require('mcp-tools.errors')

local M = {}

--- Deepest nesting that every client parses without trouble.
local MAX_DEPTH = 100
--- Keys of a path that are shown.
local MAX_PATH = 12
--- A list with more holes than this is refused, as vim.json does: writing it would make nulls without end.
local SPARSE_SAFE, SPARSE_RATIO = 10, 2

local NIL, EMPTY_DICT = vim.NIL, getmetatable(vim.empty_dict())
local floor, format, huge = math.floor, string.format, math.huge
local json_encode = json_fast.plain

---@class mcp-tools.Survey
---@field path any[] keys from the root to the fault, outermost first
---@field seen table<table, true> tables on the way down
---@field exact boolean a number needs more digits than vim.json prints
---@field fault string?

--- Looks at a value once; stops at the first thing that JSON cannot carry.
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
    survey.exact = survey.exact or not json_fast.is_exact(value)
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

--- A dotted path for people: `result.lines[3].text`.
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

--- The array length that vim.json would give a table, or nil when it would write an object.
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

--- A number with all the digits that it needs.
---@param n number
---@return string
function M.number(n)
  if n == 0 then
    return 1 / n < 0 and '-0' or '0'
  end
  if n == floor(n) and n < 2 ^ 63 and n > -2 ^ 63 then
    return format('%d', n)
  end
  local short = format('%.16g', n)
  return tonumber(short) == n and short or format('%.17g', n)
end

local function write_table(out, value)
  local length = array_length(value)
  if length then
    out[#out + 1] = '['
    for i = 1, length do
      out[#out + 1] = i > 1 and ',' or nil
      write(out, value[i])
    end
    out[#out + 1] = ']'
    return
  end
  out[#out + 1] = '{'
  local first = true
  for key, item in pairs(value) do
    out[#out + 1] = (first and '' or ',') .. json_encode(tostring(key)) .. ':'
    first = false
    write(out, item)
  end
  out[#out + 1] = '}'
end

--- The slow, exact encoder: same shapes as vim.json, every number with the digits it needs.
write = function(out, value)
  if type(value) == 'number' then
    out[#out + 1] = M.number(value)
  elseif type(value) == 'table' then
    write_table(out, value)
  else
    out[#out + 1] = value == nil and 'null' or json_encode(value)
  end
end

--- Compact JSON text of a value.
---@param value any `{}` is `[]` unless it is `vim.empty_dict()`; holes are nulls; mixed tables become objects
---@param root? string what the value is called in the error (default "result")
---@return string? text
---@return mcp-tools.Error? err `not_serializable`, naming the path
function M.encode(value, root)
  local quick = type(value) == 'table' and json_fast.encode(value)
  if quick then
    return quick
  end
  local survey = { path = {}, seen = {}, exact = false }
  if not walk(survey, value, 1) then
    local path = M.path(root or 'result', survey.path)
    return nil, errors.new('not_serializable', ('%s: %s'):format(path, survey.fault))
  end
  if survey.exact then
    local out = {}
    write(out, value)
    return table.concat(out)
  end
  return json_encode(value)
end

return M
