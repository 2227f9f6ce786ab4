--- UTF-8: is it, where is it not, the repair that bundled tools use, and a cut between characters.
---
--- Source: RFC 3629 (no surrogates, nothing above U+10FFFF, shortest forms only).

local M = {}

local byte, find, sub = string.byte, string.find, string.sub
local REPLACEMENT = '\239\191\189' -- U+FFFD

local function tail(x)
  return x and x >= 0x80 and x <= 0xBF
end

--- Length of the well-formed sequence that starts at `i`, or nil.
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

--- Where LuaJIT compiles, four bytes at a time are ten times faster than a pattern; most long texts are ASCII.
local ffi = require('mcp-tools.util.optional').load('ffi')
local compiles = jit.status()
local LONG = 4096

--- Position of the first byte beyond ASCII, or one up to three bytes before it.
---@param s string
---@return integer? position nil when all is ASCII
local function beyond_ascii(s)
  local words = ffi.cast('const uint32_t *', s)
  local count = math.floor(#s / 4)
  for i = 0, count - 1 do
    if bit.band(words[i], 0x80808080) ~= 0 then
      return i * 4 + 1
    end
  end
  return find(s, '[\128-\255]', count * 4 + 1)
end

--- Position of the first byte that is not UTF-8.
---@param s string
---@param from? integer where to begin (default 1)
---@return integer? position 1-based; nil when all from there on is well-formed
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

--- Checks a text that comes in pieces, which may end within a character.
---@return fun(piece: string, is_last: boolean?): boolean ok false once it cannot be UTF-8 any more
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

--- A copy in which every byte that is not UTF-8 is U+FFFD.
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

--- The beginning of a text, for a line that people read: whole characters, and `…` where something is left out.
---@param text string
---@param max integer bytes kept
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
