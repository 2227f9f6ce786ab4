--- Sets of characters, and the alphabet that regular expressions are matched in.
---
--- Receives: code points and ranges of them.
--- Sends: sets as sorted ranges; a set as an atom of a Vim pattern; texts moved into the alphabet.
--- Does not know about: the syntax of ECMAScript patterns, schemas.
---
--- Vim's matcher takes a letter with the combining marks (from 0.11 on: a whole grapheme) that follow it as one
--- character, ends a text at NUL and treats a line break as an end of line. JSON Schema counts code points. So both
--- pattern and text are moved, one character to one character, to where none of this happens: the private planes.

local optional = require('mcp-tools.util.optional')

local bit = optional.load('bit')

local M = {}

M.LAST = 0x10FFFF

--- { first, last, offset }: where characters move. Planes 4 to 13 hold no characters and stay (and are targets).
local MOVES = {
  { 0x0, 0x0, 0xA0000 },
  { 0x1, 0x9, 0 },
  { 0xA, 0xA, 0xA0000 },
  { 0xB, 0x7F, 0 },
  { 0x80, 0xFFFF, 0xF0000 },
  { 0x10000, 0x1FFFF, 0xF0000 },
  { 0x20000, 0xDFFFF, 0 },
  { 0xE0000, 0x10FFFF, -0x30000 },
}

--- Moved characters that are remembered; the memory starts afresh when it is full.
local MAX_REMEMBERED = 4096

---@alias mcp-tools.schema.Set integer[][] sorted, disjoint ranges

--- Sorts and joins ranges.
---@param ranges integer[][]
---@return mcp-tools.schema.Set
function M.set(ranges)
  table.sort(ranges, function(a, b)
    return a[1] < b[1]
  end)
  local out = {}
  for _, range in ipairs(ranges) do
    local last = out[#out]
    if last and range[1] <= last[2] + 1 then
      last[2] = math.max(last[2], range[2])
    else
      out[#out + 1] = { range[1], range[2] }
    end
  end
  return out
end

--- All characters that are not in a set.
---@param set mcp-tools.schema.Set
---@return mcp-tools.schema.Set
function M.negate(set)
  local out, from = {}, 0
  for _, range in ipairs(set) do
    if range[1] > from then
      out[#out + 1] = { from, range[1] - 1 }
    end
    from = range[2] + 1
  end
  if from <= M.LAST then
    out[#out + 1] = { from, M.LAST }
  end
  return out
end

--- UTF-8 of a code point.
---@param cp integer
---@return string
local function encode(cp)
  if cp < 0x80 then
    return string.char(cp)
  end
  local tail = {}
  local limit = 0x40
  repeat
    table.insert(tail, 1, string.char(0x80 + bit.band(cp, 0x3F)))
    cp = bit.rshift(cp, 6)
    limit = #tail == 1 and 0x20 or limit / 2
  until cp < limit
  local lead = #tail == 1 and 0xC0 or (#tail == 2 and 0xE0 or 0xF0)
  return string.char(lead + cp) .. table.concat(tail)
end
M.encode = encode

--- Code point of one character's bytes; nil when they are not UTF-8.
---@param text string
---@return integer?
function M.decode(text)
  local a, b, c, d = text:byte(1, 4)
  local n = a < 0x80 and 1 or a < 0xE0 and 2 or a < 0xF0 and 3 or 4
  if #text ~= n then
    return nil
  end
  if n == 1 then
    return a
  elseif n == 2 then
    return (a - 0xC0) * 0x40 + b - 0x80
  elseif n == 3 then
    return (a - 0xE0) * 0x1000 + (b - 0x80) * 0x40 + c - 0x80
  end
  return (a - 0xF0) * 0x40000 + (b - 0x80) * 0x1000 + (c - 0x80) * 0x40 + d - 0x80
end

---@param cp integer
---@return integer
local function move(cp)
  for _, m in ipairs(MOVES) do
    if cp <= m[2] then
      return cp + m[3]
    end
  end
  return cp
end

local remembered, count = {}, 0

local function moved(char)
  local out = remembered[char]
  if not out then
    local cp = M.decode(char)
    out = cp and encode(move(cp)) or char
    if count >= MAX_REMEMBERED then
      remembered, count = {}, 0
    end
    remembered[char], count = out, count + 1
  end
  return out
end

--- A text in the alphabet of the patterns.
---@param text string
---@return string
function M.text(text)
  if not text:find('[%z\n\128-\255]') then
    return text
  end
  return (text:gsub('[%z\n\194-\244][\128-\191]*', moved))
end

--- Characters with a meaning inside `\[…]`: they cannot end a range.
local SPECIAL = { [0x5B] = true, [0x5C] = true, [0x5D] = true, [0x5E] = true, [0x2D] = true }

--- The ranges of a set, moved, as the inside of a Vim collection.
local function inside(set)
  local found, parts = {}, {}
  for _, range in ipairs(set) do
    for _, m in ipairs(MOVES) do
      local lo, hi = math.max(range[1], m[1]), math.min(range[2], m[2])
      while lo <= hi and SPECIAL[lo] do
        found[lo] = true
        lo = lo + 1
      end
      local tail = {}
      while lo <= hi and SPECIAL[hi] do
        found[hi] = true
        hi = hi - 1
      end
      if lo <= hi then
        local first, last = encode(lo + m[3]), encode(hi + m[3])
        parts[#parts + 1] = first == last and first or first .. '-' .. last
      end
      vim.list_extend(parts, tail)
    end
  end
  local body = table.concat(parts) .. (found[0x5C] and '\\\\' or '') .. (found[0x5B] and '[' or '')
  body = (found[0x5D] and ']' or '') .. body
  if found[0x5E] then
    -- First it would negate.
    body = body ~= '' and body .. '^' or (found[0x2D] and '-^' or nil)
    if body == '-^' then
      return body
    end
  end
  return body and body .. (found[0x2D] and '-' or '')
end

--- A set as one atom of a very-nomagic (`\V`) Vim pattern.
---@param set mcp-tools.schema.Set
---@return string
function M.atom(set)
  if #set == 0 then
    return '\\%(\\%(\\)\\@!\\)'
  end
  if #set == 1 and set[1][1] == set[1][2] then
    local cp = set[1][1]
    return cp == 0x5C and '\\\\' or encode(move(cp))
  end
  local others = M.negate(set)
  if #others == 0 then
    return '\\.'
  end
  -- The shorter of the two: `[^"]` as such, not as two ranges over all planes.
  if set[#set][2] == M.LAST then
    local body = inside(others)
    return body == nil and '\\[^^]' or '\\[^' .. body .. ']'
  end
  return '\\[' .. inside(set) .. ']'
end

return M
