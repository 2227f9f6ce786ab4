--- Validates, repairs and truncates UTF-8.
---
--- Source: RFC 3629 (no surrogates, nothing above U+10FFFF, shortest forms only).

local M = {}

local byte, find, sub = string.byte, string.find, string.sub
local REPLACEMENT = '\239\191\189' -- U+FFFD

local function tail(x)
  return x and x >= 0x80 and x <= 0xBF
end

--- Returns the length of the well-formed sequence at `i`, or nil.
---@param s string
---@param i integer
---@return integer?
local function sequence(s, i)
  local a, b, c, d = byte(s, i, i + 3)
  if a < 0x80 then
    return 1
  end
  if a >= 0xC2 and a <= 0xDF then
    return tail(b) and 2 or nil
  end
  if a >= 0xE0 and a <= 0xEF then
    local low = a == 0xE0 and 0xA0 or 0x80
    local high = a == 0xED and 0x9F or 0xBF
    return b and b >= low and b <= high and tail(c) and 3 or nil
  end
  if a >= 0xF0 and a <= 0xF4 then
    local low = a == 0xF0 and 0x90 or 0x80
    local high = a == 0xF4 and 0x8F or 0xBF
    return b and b >= low and b <= high and tail(c) and tail(d) and 4 or nil
  end
  return nil
end

--- With the JIT, four bytes at a time are ten times faster than a pattern; most long texts are ASCII.
local compiles = jit.status()
local LONG = 4096

--- Returns the position of the first non-ASCII byte, or up to three bytes before it.
---@param s string
---@return integer? position nil: all ASCII
local function beyond_ascii(s)
  local ffi = require('mcp-tools.util.optional').load('ffi') -- start-up cost
  local words = ffi.cast('const uint32_t *', s)
  local count = math.floor(#s / 4)
  for i = 0, count - 1 do
    if bit.band(words[i], 0x80808080) ~= 0 then
      return i * 4 + 1
    end
  end
  return find(s, '[\128-\255]', count * 4 + 1)
end

--- Returns the position of the first byte that is not valid UTF-8.
---@param s string
---@param from? integer start (default: 1)
---@return integer? position 1-based; nil: valid
function M.invalid_at(s, from)
  local start = from or 1
  if compiles and start == 1 and #s >= LONG then
    local near = beyond_ascii(s)
    if not near then
      return nil
    end
    start = near
  end
  local i = find(s, '[\128-\255]', start)
  while i do
    local n = sequence(s, i)
    if not n then
      return i
    end
    i = find(s, '[\128-\255]', i + n)
  end
  return nil
end

--- Returns a checker for text in pieces, which may end within a character.
---@return fun(piece: string, is_last: boolean?): boolean ok false once the text is invalid
function M.checker()
  local rest, ok = '', true
  return function(piece, is_last)
    local whole = rest .. piece
    local bad = ok and M.invalid_at(whole)
    rest = bad and sub(whole, bad) or ''
    local is_begun = bad and #rest < 4 and not is_last and byte(rest) >= 0xC2 and byte(rest) <= 0xF4
    ok = ok and (not bad or is_begun and not find(rest, '[^\128-\191]', 2))
    return ok
  end
end

--- Replaces every invalid byte with U+FFFD.
---@param s string
---@return string text, boolean lossy
function M.repair(s)
  local bad = M.invalid_at(s)
  if not bad then
    return s, false
  end
  local parts, from = {}, 1
  while bad do
    parts[#parts + 1] = sub(s, from, bad - 1)
    parts[#parts + 1] = REPLACEMENT
    from = bad + 1
    bad = M.invalid_at(s, from)
  end
  parts[#parts + 1] = sub(s, from)
  return table.concat(parts), true
end

--- Truncates a text at a character and appends `…`.
---@param text string
---@param max integer maximum number of bytes kept
---@return string
function M.cut(text, max)
  if #text <= max then
    return text
  end
  while max > 0 and tail(byte(text, max + 1)) do
    max = max - 1
  end
  return sub(text, 1, max) .. '…'
end

return M
