--- JSON text of values that vim.json writes without fault, which nearly all are; three times as fast where LuaJIT runs.
---
--- Receives: any table.
--- Sends: the very text that `vim.json.encode` gives since 0.11, or nil for what needs a closer look (util/json.lua).
--- Does not know about: faults, paths.
---
--- One pass writes and checks. vim.json alone looks at each table twice and takes 100 ns for a number; compiled Lua
--- does not. What is rare goes to vim.json piece by piece, so that escapes and digits are its own.

local buffer = require('mcp-tools.util.optional').load('string.buffer') -- not in every LuaJIT 2.1

local M = {}

local json_encode = vim.json.encode
if json_encode('/') ~= '"/"' then
  -- 0.10 writes every `/` as `\/`, which is right but long, and odd to read in a path.
  json_encode = function(value)
    return (vim.json.encode(value):gsub('\\/', '/'))
  end
end

--- What vim.json writes, the same on every version.
---@type fun(value: any): string
M.plain = json_encode

local byte, floor, format = string.byte, math.floor, string.format
local NIL, EMPTY_DICT = vim.NIL, getmetatable(vim.empty_dict())

--- Deepest nesting that every client parses without trouble; a table that contains itself is deeper.
local MAX_DEPTH = 100
--- Integers below it have few enough digits for every version of vim.json.
local MAX_INTEGER = 1e14
--- A list with more holes than this is refused, as vim.json does: writing it would make nulls without end.
local SPARSE_SAFE, SPARSE_RATIO = 10, 2
--- Bytes of a string that are looked at here; vim.json is as quick with longer ones.
local SHORT = 64
--- With one of this length in it the whole value is left to vim.json: copies would take longer than all else.
local LONG = 32 * 1024
--- Names of fields that are kept as text: most results have the same few. Others take their place after a while.
local MAX_NAMES, MAX_MISSED = 256, 16384
--- Bytes that the buffer keeps between two results.
local KEPT = 256 * 1024

local DIGITS = vim.fn.has('nvim-0.11') == 1 and '%.16g' or '%.14g'
--- vim.json rounds a tie to even, `format` up. At a power of two, where numbers below lie closer, only one comes back.
local POWER_OF_TWO = { [0.5] = true, [-0.5] = true }

--- Does vim.json print a number so that it can be read back?
---@param value number
---@return boolean
function M.is_exact(value)
  if value == floor(value) and value < MAX_INTEGER and value > -MAX_INTEGER then
    return true
  end
  local finite = value - value == 0
  return finite and tonumber(format(DIGITS, value)) == value and not POWER_OF_TWO[math.frexp(value)]
end

--- Is it a value that vim.json writes as it should? A cycle is found by its depth.
---@param value table
---@param depth integer
---@return boolean plain
local function is_plain(value, depth)
  if depth > MAX_DEPTH then
    return false
  end
  local numbered, max, named = 0, 0, false
  for key, item in pairs(value) do
    local kind = type(key)
    if kind == 'string' then
      named = true
    elseif kind == 'number' then
      numbered = numbered + 1
      max = key > max and key or max
    else
      return false
    end
    kind = type(item)
    if kind == 'table' then
      if not is_plain(item, depth + 1) then
        return false
      end
    elseif kind == 'number' then
      if not M.is_exact(item) then
        return false
      end
    elseif kind ~= 'string' and kind ~= 'boolean' and item ~= NIL then
      return false
    end
  end
  return numbered == 0 or not (named or max > SPARSE_SAFE and max > SPARSE_RATIO * numbered)
end

--- Where nothing is compiled.
---@param value table
---@return string?
local function checked(value)
  return is_plain(value, 1) and json_encode(value) or nil
end

if not (buffer and jit.status()) then
  M.encode = checked
  return M
end

--- Characters that vim.json does not write as they are.
local ESCAPED = {}
for code = 0, 127 do
  local char = string.char(code)
  ESCAPED[code] = json_encode(char) ~= '"' .. char .. '"' or nil
end

--- Names with their quotes and colon; how many; how many others were met since they are kept.
local names, count, missed = {}, 0, 0

local out = buffer.new()
local long = false
local write

---@param text string
local function write_string(text)
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

--- Writes the name of a field that is not kept yet.
---@param name string
local function write_name(name)
  if count < MAX_NAMES and #name <= SHORT then
    names[name], count = json_encode(name) .. ':', count + 1
  elseif missed < MAX_MISSED then
    missed = missed + 1
  else
    names, count, missed = {}, 0, 0
  end
  write_string(name)
  out:put(':')
end

---@param value any
---@param depth integer
---@return boolean written
local function write_value(value, depth)
  local kind = type(value)
  if kind == 'string' then
    if #value > LONG then
      long = true
      return false
    end
    write_string(value)
  elseif kind == 'number' then
    if value < MAX_INTEGER and value > -MAX_INTEGER and value == floor(value) then
      out:put(value)
    elseif M.is_exact(value) then
      out:put(json_encode(value))
    else
      return false
    end
  elseif kind == 'table' then
    return write(value, depth + 1)
  elseif kind == 'boolean' then
    out:put(value and 'true' or 'false')
  elseif value == NIL then
    out:put('null')
  else
    return false
  end
  return true
end

---@param list table
---@param length integer
---@return boolean
local function are_strings(list, length)
  for i = 1, length do
    if type(list[i]) ~= 'string' then
      return false
    end
  end
  return true
end

---@param list table
---@param length integer
---@param depth integer
---@return boolean written
local function write_list(list, length, depth)
  local keys = 0
  for _ in pairs(list) do
    keys = keys + 1
  end
  if keys ~= length then
    return false -- holes, or names as well
  end
  if type(list[1]) == 'string' and are_strings(list, length) then
    out:put(json_encode(list))
    return true
  end
  out:put('[')
  for i = 1, length do
    if i > 1 then
      out:put(',')
    end
    if not write_value(list[i], depth) then
      return false
    end
  end
  out:put(']')
  return true
end

---@param value table
---@param depth integer
---@return boolean written
write = function(value, depth)
  if depth > MAX_DEPTH then
    return false
  end
  local meta = getmetatable(value)
  if meta ~= nil then
    local empty = meta == EMPTY_DICT and next(value) == nil
    return empty and out:put('{}') ~= nil
  end
  local length = #value
  if length > 0 then
    return write_list(value, length, depth)
  end
  local first = true
  for key, item in pairs(value) do
    if type(key) ~= 'string' then
      return false
    end
    local name = names[key]
    if name then
      out:put(first and '{' or ',', name)
    else
      out:put(first and '{' or ',')
      write_name(key)
    end
    first = false
    if not write_value(item, depth) then
      return false
    end
  end
  out:put(first and '[]' or '}')
  return true
end

--- The text of a table, or nil when something in it needs a closer look.
---@param value table
---@return string?
function M.encode(value)
  out:reset()
  long = false
  if not write(value, 1) then
    return long and checked(value) or nil
  end
  local text = out:get()
  if #text > KEPT then
    out:free()
  end
  return text
end

return M
