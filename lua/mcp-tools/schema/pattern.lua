--- ECMAScript regular expressions by way of `vim.regex`, where that is exact.
---
--- Receives: the source of a pattern as JSON Schema writes it (code points, as with the `u` flag).
--- Sends: a function text → boolean; or why there is none (look-behinds, backreferences, `\p{…}`, syntax errors).
--- Does not know about: schemas.
---
--- What comes out is very nomagic (`\V`), case-sensitive (`\C`) and names its engine, so no option of the person's
--- changes it. Greedy and lazy are alike: only whether there is a match counts, not which. Nothing translates to the
--- backtracking engine but what it can do in one pass: the editor must not hang on a pattern.

local charset = require('mcp-tools.schema.charset')

local M = {}

--- The automaton's time per character grows with the square of a varying count: more than this would be felt.
local MAX_REPEAT = 100
--- Where the backtracking engine may be used, counts from here on are left to it.
local LONG_REPEAT = 20
--- Items after repetitions are written out; a larger automaton costs too much per character.
local MAX_ITEMS = 500
--- Beyond this Vim's own number for "no limit" begins.
local MAX_COUNT = 30000

local DIGIT = charset.set({ { 0x30, 0x39 } })
local WORD = charset.set({ { 0x30, 0x39 }, { 0x41, 0x5A }, { 0x5F, 0x5F }, { 0x61, 0x7A } })
local LINE_ENDS = charset.set({ { 0xA, 0xA }, { 0xD, 0xD }, { 0x2028, 0x2029 } })
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

local ANY = charset.atom(charset.negate(LINE_ENDS))
---@class mcp-tools.schema.PatternParser
---@field source string
---@field at integer next byte
---@field longest integer the highest count of a repetition
---@field groups boolean a group is repeated, or there is a choice
---@field anchors integer `^` and `$` so far
---@field variable integer repetitions whose count can vary
---@field unbounded integer repetitions without an upper limit
local Parser = {}
Parser.__index = Parser

--- Faults leave the parser by `error` with this marker and are caught in `translate`, nowhere else.
local Untranslatable = {}

local function refuse(why)
  error(setmetatable({ why = why }, Untranslatable), 0)
end

function Parser:peek(n)
  return self.source:sub(self.at, self.at + (n or 1) - 1)
end

--- Takes `text` when it comes next.
function Parser:take(text)
  if self.source:sub(self.at, self.at + #text - 1) == text then
    self.at = self.at + #text
    return true
  end
  return false
end

--- Takes what a Lua pattern matches here.
function Parser:match(pattern)
  local from, to, capture = self.source:find('^' .. pattern, self.at)
  if from then
    self.at = to + 1
    return capture or self.source:sub(from, to)
  end
end

--- One character of the source as a code point.
function Parser:character()
  local char = self:match('[%z\1-\127\194-\244][\128-\191]*')
  return char and charset.decode(char) or refuse('the pattern is not UTF-8')
end

--- What `\u` stands for; a pair of surrogates is one character.
function Parser:unicode()
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
function Parser:escape(in_class)
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
function Parser:class()
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

--- After `(`: a group.
---@return string atom, integer items
function Parser:group()
  if self:match('%?<?[=!]') then
    -- The automaton errs on them now and then, and Vim's word boundaries depend on 'iskeyword'.
    refuse('a look-ahead translates only after a leading ^, a look-behind nowhere')
  elseif self:take('?') and not self:take(':') and not self:match('<[%a_$][%w_$]*>') then
    refuse('this kind of group does not translate')
  end
  local body, items = self:choice()
  if not self:take(')') then
    refuse('a group is not closed')
  end
  return '\\%(' .. body .. '\\)', items
end

--- One item, without its repetition.
---@return string atom, integer items, boolean assertion, boolean group
function Parser:atom()
  if self:take('(') then
    local atom, items = self:group()
    return atom, items, false, true
  elseif self:take('[') then
    return self:class(), 1, false, false
  elseif self:take('.') then
    return ANY, 1, false, false
  elseif self:peek():find('[%^$]') then
    self.anchors = self.anchors + 1
    return '\\_' .. self:match('.'), 1, true, false
  elseif self:take('\\') then
    if self:match('[bB]') then
      refuse('word boundaries do not translate')
    end
    local cp, class = self:escape(false)
    return charset.atom(class or { { cp, cp } }), 1, false, false
  elseif self:peek():find('[*+?]') then
    refuse('nothing to repeat')
  end
  local cp = self:character()
  return charset.atom({ { cp, cp } }), 1, false, false
end

--- A repetition, when one comes next.
---@return integer? min, integer? max nil: no limit
function Parser:repetition()
  local min, max
  if self:take('*') then
    min = 0
  elseif self:take('+') then
    min = 1
  elseif self:take('?') then
    min, max = 0, 1
  else
    local count = self:match('{(%d+,?%d*)}')
    if not count then
      return nil
    end
    local low, comma, high = count:match('^(%d+)(,?)(%d*)$')
    min = tonumber(low)
    max = comma == '' and min or tonumber(high)
    if max and max < min then
      refuse('a repetition is backwards')
    elseif (max or min) > MAX_COUNT then
      refuse('a repetition is too long')
    end
  end
  self:take('?')
  return min, max
end

--- An item with its repetition.
---@return string text, integer items
function Parser:term()
  local anchors = self.anchors
  local atom, items, assertion, group = self:atom()
  local min, max = self:repetition()
  if not min then
    return atom, items
  elseif assertion or self.anchors > anchors then
    refuse('a repeated assertion does not translate')
  end
  self.groups = self.groups or group
  self.variable = self.variable + (min == max and 0 or 1)
  self.unbounded = self.unbounded + (max and 0 or 1)
  self.longest = math.max(self.longest, max or min)
  items = math.max(items, 1) * math.min(math.max(max or min, 1), MAX_REPEAT)
  if items > MAX_ITEMS then
    refuse('too many repetitions within repetitions')
  end
  return ('%s\\{%d,%s}'):format(atom, min, max or ''), items
end

--- Alternatives.
---@return string text, integer items, integer branches
function Parser:choice()
  local out, total, branches = {}, 0, 1
  while self.at <= #self.source and self:peek() ~= ')' do
    if self:take('|') then
      self.groups = true
      branches = branches + 1
      out[#out + 1] = '\\|'
    else
      local text, items = self:term()
      out[#out + 1] = text
      total = total + items
    end
  end
  if total > MAX_ITEMS then
    refuse('too many repetitions')
  end
  return table.concat(out), total, branches
end

--- A Vim pattern of what has been parsed, with the engine that suits it.
---@param text string
---@param anchored boolean
---@return string
function Parser:piece(text, anchored)
  -- Long counts are for the backtracking engine, where it cannot go back far.
  local flat = anchored and not self.groups and self.variable <= 2 and self.unbounded <= 1
  if flat and self.longest > LONG_REPEAT then
    return '\\%#=1\\C\\V' .. text
  elseif self.longest > MAX_REPEAT then
    refuse('a long repetition beside others does not translate')
  end
  return '\\%#=2\\C\\V' .. text
end

--- Forgets what was counted, before the next piece.
function Parser:reset()
  self.longest, self.anchors, self.variable, self.unbounded = 0, 0, 0, 0
  self.groups = false
end

---@class mcp-tools.schema.PatternPiece
---@field text string Vim pattern
---@field wanted boolean whether it must match

--- All pieces: look-aheads right after a leading `^` are patterns of their own, then the rest.
---@return mcp-tools.schema.PatternPiece[]
function Parser:pieces()
  local out = {}
  if self:match('%^%(%?[=!]') then
    self.at = 2
    local look = self:match('%(%?([=!])')
    while look do
      self:reset()
      local body = self:choice()
      if not self:take(')') then
        refuse('a group is not closed')
      end
      out[#out + 1] = { text = self:piece('\\_^\\%(' .. body .. '\\)', true), wanted = look == '=' }
      look = self:match('%(%?([=!])')
    end
  end
  self:reset()
  local ahead = #out > 0
  local text, _, branches = self:choice()
  if self.at <= #self.source then
    refuse('a bracket is not opened')
  elseif ahead and branches > 1 then
    refuse('a look-ahead beside a choice does not translate')
  end
  text = ahead and '\\_^' .. text or text
  out[#out + 1] = { text = self:piece(text, self.source:sub(1, 1) == '^'), wanted = true }
  return out
end

---@param source string
---@return mcp-tools.schema.PatternPiece[]? pieces
---@return string? why not
local function translate(source)
  local parser = setmetatable({ source = source, at = 1 }, Parser)
  parser:reset()
  local ok, pieces = pcall(parser.pieces, parser)
  if ok then
    return pieces
  elseif getmetatable(pieces) == Untranslatable then
    return nil, pieces.why
  end
  error(pieces, 0)
end

---@type table<string, fun(text: string): boolean>
local compiled = setmetatable({}, { __mode = 'v' })

--- Compiles a pattern.
---@param source string
---@return (fun(text: string): boolean)? matches
---@return string? why there is none
function M.compile(source)
  if compiled[source] then
    return compiled[source]
  end
  local pieces, why = translate(source)
  if not pieces then
    return nil, why
  end
  local regexes, wanted = {}, {}
  for i, piece in ipairs(pieces) do
    local ok, regex = pcall(vim.regex, piece.text)
    if not ok then
      return nil, 'Vim does not take its translation'
    end
    regexes[i], wanted[i] = regex, piece.wanted
  end
  local function matches(text)
    text = charset.text(text)
    for i = 1, #regexes do
      if (regexes[i]:match_str(text) ~= nil) ~= wanted[i] then
        return false
      end
    end
    return true
  end
  compiled[source] = matches
  return matches
end

return M
