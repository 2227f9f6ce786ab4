--- Translates the common subset of regular expressions (as in ECMAScript, Python and Rust) to Vim patterns.
---
--- Both the JSON Schema keyword `pattern` and file search without ripgrep or git use it. What has no exact counterpart
--- is refused with a reason: look-around, word boundaries, backreferences, Unicode properties, inline flags.

local M = {}

--- Items of a pattern, repetitions written out. The time of Vim's automaton grows with the square of this number.
local MAX_ITEMS = 300
--- Vim treats larger counts as "no limit".
local MAX_COUNT = 30000

--- What `refuse` raises.
local Refusal = {}

---@param why string
local function refuse(why)
  error(setmetatable({ why = why }, Refusal), 0)
end

-- Characters -------------------------------------------------------------------------------------------------------

--- Vim joins combining characters with the one before them, ends a text at NUL, and matches line ends with `$`. `move`
--- puts these characters into plane 15, where Vim treats each as one plain character. Replacing the first byte is
--- enough.
local MOVED = { ['\0'] = '\243\176\128\128', ['\n'] = '\243\176\128\138' }
for byte = 0xC2, 0xDF do
  MOVED[string.char(byte)] = '\243\176' .. string.char(byte - 0x40)
end
for byte = 0xE0, 0xEF do
  MOVED[string.char(byte)] = '\243' .. string.char(byte - 0x30)
end

--- Makes a text comparable with a moved pattern.
---@param text string
---@return string
function M.move(text)
  return (text:gsub('[%z\n\194-\239]', MOVED))
end

--- Returns ranges of code points, written in hexadecimal.
---@param text string
---@return integer[][]
local function code_ranges(text)
  local out = {}
  for first, last in text:gmatch('(%x+)%-?(%x*)') do
    table.insert(out, { tonumber(first, 16), tonumber(last == '' and first or last, 16) })
  end
  return out
end

--- Ranges of code points that `move` keeps in order; without plane 15, to which it moves.
local SEGMENTS = code_ranges('0 1-9 A B-7F 80-FFFF 10000-EFFFF 100000-10FFFF')

---@param cp integer
---@return string
local function char_of(cp)
  return cp < 0x80 and string.char(cp) or vim.fn.nr2char(cp, 1 --[[@as any]])
end

local DIGIT, WORD = code_ranges('30-39'), code_ranges('30-39 41-5A 5F 61-7A')
local SPACE = code_ranges('9-D 20 A0 1680 2000-200A 2028-2029 202F 205F 3000 FEFF')
local CLASSES = { d = DIGIT, w = WORD, s = SPACE }
local LINE_ENDS = code_ranges('A D 2028-2029')
local CONTROLS = { t = 0x9, n = 0xA, v = 0xB, f = 0xC, r = 0xD, ['0'] = 0x0 }

-- Parser -----------------------------------------------------------------------------------------------------------

---@class mcp-tools.regex.Parser
---@field source string
---@field at integer next byte
---@field move fun(text: string): string
---@field variable integer repetitions whose count varies
---@field optional integer items beyond the lowest counts of repetitions
---@field branches boolean there is a choice, or a repeated group
---@field wide boolean there is a range that Vim's backtracking engine does not take
local Parser = {}
Parser.__index = Parser

--- Consumes what a Lua pattern matches at the current position.
---@return string?
function Parser:match(pattern)
  local from, to, capture = self.source:find('^' .. pattern, self.at)
  if from then
    self.at = to + 1
    return capture or self.source:sub(from, to)
  end
end

---@param cp integer
---@param in_class? boolean
---@return string
function Parser:literal(cp, in_class)
  local char = char_of(cp)
  if cp >= 0x80 or cp == 0 or cp == 10 then
    return self.move(char)
  elseif in_class and not char:find('%w') then
    return ('\\x%02x'):format(cp)
  end
  return (char:find('[\\^$]') and '\\%%d%d' or '%s'):format(char:find('[\\^$]') and cp or char)
end

--- A set of characters as a Vim collection.
---@param ranges integer[][]
---@param negative? boolean
---@return string
function Parser:collection(ranges, negative)
  local out = {}
  for _, range in ipairs(ranges) do
    for _, segment in ipairs(SEGMENTS) do
      local first, last = math.max(range[1], segment[1]), math.min(range[2], segment[2])
      if first <= last then
        self.wide = self.wide or last - first > 250
        local from = self:literal(first, true)
        out[#out + 1] = first == last and from or from .. '-' .. self:literal(last, true)
      end
    end
  end
  return ('\\[%s%s]'):format(negative and '^' or '', table.concat(out))
end

--- Reads one character of the source.
---@return integer code point
function Parser:character()
  local char = self:match('[%z\1-\127]') or self:match('[\194-\244][\128-\191]+')
  return char and vim.fn.char2nr(char, 1) or refuse('the pattern is not UTF-8')
end

--- Reads what follows a backslash: a character, or a class.
---@return integer? cp
---@return integer[][]? class
---@return boolean? negative
function Parser:escape()
  local c = self:match('.') or refuse('the pattern ends with a backslash')
  if CLASSES[c:lower()] then
    return nil, CLASSES[c:lower()], c:find('%u') ~= nil
  elseif CONTROLS[c] and not self.source:find('^%d', self.at) then
    return CONTROLS[c]
  elseif c == 'x' or c == 'u' then
    local hex = self:match(c == 'x' and '%x%x' or '%x%x%x%x') or self:match('{(%x+)}')
    local cp = tonumber(hex or refuse(('\\%s without a number'):format(c)), 16)
    if cp > 0x10FFFF or cp >= 0xD800 and cp <= 0xDFFF then
      refuse('surrogates cannot be translated')
    end
    return cp
  elseif c:find('%w') then
    refuse(('\\%s cannot be translated'):format(c))
  end
  self.at = self.at - 1
  return self:character()
end

--- Reads a class, after its `[`.
---@return string
function Parser:class()
  if self:match('\\s\\S%]') or self:match('\\d\\D%]') or self:match('\\w\\W%]') then
    return '\\.'
  end
  local negative, ranges = self:match('%^') ~= nil, {}
  local function member()
    if not self:match('\\') then
      return self:character()
    elseif self:match('b') then
      return 8
    end
    local cp, class, is_negative = self:escape()
    return cp, is_negative and refuse('a negated class within a class cannot be translated') or class
  end
  while not self:match('%]') do
    if self.at > #self.source then
      refuse('a class is not closed')
    end
    local first, class = member()
    local last = first
    if first and self.source:find('^%-[^%]]', self.at) then
      self.at = self.at + 1
      last = member() or refuse('a range ends with a class')
      if last < first then
        refuse('a range in a class is backwards')
      end
    end
    vim.list_extend(ranges, class or { { first, last } })
  end
  if #ranges == 0 then
    return negative and '\\.' or refuse('a class is empty')
  end
  return self:collection(ranges, negative)
end

--- Reads one item without its repetition.
---@return string text, integer items, boolean repeatable
function Parser:atom()
  if self:match('%(') then
    if self:match('%?') and not (self:match(':') or self:match('P?<[%a_][%w_]*>')) then
      refuse('this kind of group cannot be translated')
    end
    local text, items = self:choice()
    if not self:match('%)') then
      refuse('a group is not closed')
    end
    return '\\%(' .. text .. '\\)', items, true
  elseif self:match('%[') then
    return self:class(), 1, true
  elseif self:match('%.') then
    return self:collection(LINE_ENDS, true), 1, true
  elseif self:match('%^') then
    return '\\_^', 1, false
  elseif self:match('%$') then
    return '\\_$', 1, false
  elseif self:match('\\') then
    local cp, class, negative = self:escape()
    return class and self:collection(class, negative) or self:literal(cp), 1, true
  elseif self:match('[*+?]') then
    refuse('nothing to repeat')
  end
  return self:literal(self:character()), 1, true
end

--- Reads a repetition.
---@return integer? min nil: none follows
---@return integer? max nil: unbounded
function Parser:repetition()
  local simple = self:match('[*+?]')
  if simple then
    return simple == '+' and 1 or 0, simple == '?' and 1 or nil
  end
  local count = self:match('{(%d+,?%d*)}')
  if not count then
    return nil
  end
  local low, comma, high = count:match('^(%d+)(,?)(%d*)$')
  local min = tonumber(low)
  local max = comma == '' and min or tonumber(high)
  if max and max < min then
    refuse('a repetition is backwards')
  elseif (max or min) > MAX_COUNT then
    refuse('a repetition is too long')
  end
  return min, max
end

--- Reads an item with its repetition.
---@return string text, integer items
function Parser:term()
  local starts_group = self.source:sub(self.at, self.at) == '('
  local text, items, repeatable = self:atom()
  local min, max = self:repetition()
  if not min then
    return text, items
  elseif not repeatable then
    refuse('a repeated anchor cannot be translated')
  end
  local lazy = self:match('%?') and '-' or ''
  if self:match('[*+]') then
    refuse('nothing to repeat')
  end
  self.branches = self.branches or starts_group
  self.variable = self.variable + (min == max and 0 or 1)
  local most = math.max(max or min, 1)
  self.optional = self.optional + items * (most - min)
  return ('%s\\{%s%d,%s}'):format(text, lazy, min, max or ''), items * most
end

--- Reads alternatives.
---@return string text, integer items
function Parser:choice()
  local out, total = {}, 0
  while self.at <= #self.source and not self.source:find('^%)', self.at) do
    if self:match('|') then
      self.branches = true
      out[#out + 1] = '\\|'
    else
      local text, items = self:term()
      out[#out + 1], total = text, total + items
    end
  end
  return table.concat(out), total
end

---@class mcp-tools.Regex
---@field vim string the Vim pattern; independent of options, and without case
---@field steps integer work for each character of a text, at about 10 ns

--- Translates a regular expression. Append `\C` or `\c` to the result.
---@param source string
---@param move? fun(text: string): string `M.move`, if it is applied to the texts too
---@return mcp-tools.Regex?
---@return string? why it cannot be translated
function M.translate(source, move)
  local parser = setmetatable({
    source = source,
    at = 1,
    variable = 0,
    optional = 0,
    branches = false,
    wide = false,
    move = move or function(text)
      return text
    end,
  }, Parser)
  local ok, text, items = pcall(parser.choice, parser)
  if not ok then
    if getmetatable(text) ~= Refusal then
      error(text, 0)
    end
    return nil, (text --[[@as table]]).why
  elseif parser.at <= #source then
    return nil, 'a bracket is not opened'
  elseif source:sub(1, 1) == '^' and parser.variable <= 1 and not (parser.branches or parser.wide) then
    -- Vim's backtracking engine tries each length of the only repetition once.
    return { vim = '\\%#=1\\V' .. text, steps = 40 + items - parser.optional }
  elseif items > MAX_ITEMS then
    return nil, 'the repetitions are too long'
  end
  -- The automaton never backtracks.
  return { vim = '\\%#=2\\V' .. text, steps = items * (items + 10) }
end

return M
