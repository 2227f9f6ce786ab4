--- Reads an ECMAScript pattern character by character: escapes and classes.
---
--- Receives: the source of a pattern.
--- Sends: code points, sets, atoms of Vim patterns; `refuse` ends the reading where something does not translate.
--- Does not know about: groups, repetitions, `vim.regex`.

local charset = require('mcp-tools.schema.charset')

local DIGIT = charset.set({ { 0x30, 0x39 } })
local WORD = charset.set({ { 0x30, 0x39 }, { 0x41, 0x5A }, { 0x5F, 0x5F }, { 0x61, 0x7A } })
-- White space and line ends of ECMA-262, 12.2 and 12.3.
local SPACE = charset.set({
  { 0x9, 0xD },
  { 0x20, 0x20 },
  { 0xA0, 0xA0 },
  { 0x1680, 0x1680 },
  { 0x2000, 0x200A },
  { 0x2028, 0x2029 },
  { 0x202F, 0x202F },
  { 0x205F, 0x205F },
  { 0x3000, 0x3000 },
  { 0xFEFF, 0xFEFF },
})

local CLASSES = {
  d = DIGIT,
  D = charset.negate(DIGIT),
  w = WORD,
  W = charset.negate(WORD),
  s = SPACE,
  S = charset.negate(SPACE),
}
local CONTROLS = { t = 0x9, n = 0xA, v = 0xB, f = 0xC, r = 0xD }

---@class mcp-tools.schema.Scanner
---@field source string
---@field at integer next byte
local Scanner = {}
Scanner.__index = Scanner

--- Marks what `refuse` throws; caught in ecma.lua, nowhere else.
Scanner.Untranslatable = {}

--- Ends the reading.
---@param why string
function Scanner.refuse(why)
  error(setmetatable({ why = why }, Scanner.Untranslatable), 0)
end

local refuse = Scanner.refuse

function Scanner:peek(n)
  return self.source:sub(self.at, self.at + (n or 1) - 1)
end

--- Takes `text` when it comes next.
function Scanner:take(text)
  if self.source:sub(self.at, self.at + #text - 1) == text then
    self.at = self.at + #text
    return true
  end
  return false
end

--- Takes what a Lua pattern matches here.
function Scanner:match(pattern)
  local from, to, capture = self.source:find('^' .. pattern, self.at)
  if from then
    self.at = to + 1
    return capture or self.source:sub(from, to)
  end
end

--- One character of the source as a code point.
function Scanner:character()
  local char = self:match('[%z\1-\127\194-\244][\128-\191]*')
  return char and charset.decode(char) or refuse('the pattern is not UTF-8')
end

--- What `\u` stands for; a pair of surrogates is one character.
function Scanner:unicode()
  local hex = self:match('{(%x+)}') or self:match('%x%x%x%x')
  local cp = hex and tonumber(hex, 16) or refuse('\\u without a number')
  if cp >= 0xD800 and cp <= 0xDBFF then
    local low = self:match('\\u(%x%x%x%x)')
    low = low and tonumber(low, 16)
    if low and low >= 0xDC00 and low <= 0xDFFF then
      return 0x10000 + (cp - 0xD800) * 0x400 + low - 0xDC00
    end
  end
  if cp > charset.LAST or (cp >= 0xD800 and cp <= 0xDFFF) then
    refuse('\\u with a number that is no character')
  end
  return cp
end

--- After a backslash: a character or a class.
---@return integer? cp
---@return mcp-tools.schema.Set? class
function Scanner:escape(in_class)
  local c = self:match('.') or refuse('ends with a backslash')
  if CLASSES[c] then
    return nil, CLASSES[c]
  elseif CONTROLS[c] then
    return CONTROLS[c]
  elseif c == 'u' then
    return self:unicode()
  elseif c == 'x' then
    return tonumber(self:match('%x%x') or refuse('\\x without a number'), 16)
  elseif c == 'c' then
    return (self:match('%a') or refuse('\\c without a letter')):byte() % 32
  elseif c == '0' and not self:peek():find('%d') then
    return 0
  elseif c == 'b' and in_class then
    return 8
  elseif c == 'p' or c == 'P' then
    refuse('Unicode properties (\\p) do not translate')
  elseif c:find('%d') or c == 'k' then
    refuse('backreferences do not translate')
  elseif c:find('%a') then
    refuse(('\\%s is no escape'):format(c))
  elseif c:byte() >= 0x80 then
    self.at = self.at - 1
    return self:character()
  end
  return c:byte()
end

--- After `[`: a class.
---@return string atom
function Scanner:class()
  local negative = self:take('^')
  local ranges = {}
  local function put(set)
    for _, range in ipairs(set) do
      ranges[#ranges + 1] = { range[1], range[2] }
    end
  end
  local function item()
    if self:take('\\') then
      return self:escape(true)
    end
    return self:character()
  end
  while not self:take(']') do
    if self.at > #self.source then
      refuse('a class is not closed')
    end
    local cp, class = item()
    if cp and self:peek() == '-' and self:peek(2) ~= '-]' then
      self.at = self.at + 1
      local last, last_class = item()
      if last_class then
        put({ { cp, cp }, { 0x2D, 0x2D } })
        put(last_class)
      elseif last < cp then
        refuse('a range in a class is backwards')
      else
        put({ { cp, last } })
      end
    else
      put(class or { { cp, cp } })
    end
  end
  local set = charset.set(ranges)
  return charset.atom(negative and charset.negate(set) or set)
end

return Scanner
