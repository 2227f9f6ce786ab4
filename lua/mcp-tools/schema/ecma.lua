--- The grammar of ECMAScript patterns, translated to Vim's as far as that is exact.
---
--- Receives: the source of a pattern.
--- Sends: Vim patterns that must match or must not; or why there are none.
--- Does not know about: schemas, `vim.regex`.
---
--- What comes out is very nomagic (`\V`), case-sensitive (`\C`) and names its engine, so no option of the person's
--- changes it. Greedy and lazy are alike: only whether there is a match counts, not which. Nothing is left to the
--- backtracking engine but what it can do in one pass: the editor must not hang on a pattern.

local charset = require('mcp-tools.schema.charset')
local Scanner = require('mcp-tools.schema.scanner')

local M = {}

--- The automaton's time per character grows with the square of a varying count: more than this would be felt.
local MAX_REPEAT = 100
--- Where the backtracking engine may be used, counts from here on are left to it.
local LONG_REPEAT = 20
--- Items after repetitions are written out; a larger automaton costs too much per character.
local MAX_ITEMS = 500
--- Beyond this Vim's own number for "no limit" begins.
local MAX_COUNT = 30000

local LINE_ENDS = charset.set({ { 0xA, 0xA }, { 0xD, 0xD }, { 0x2028, 0x2029 } })
local ANY = charset.atom(charset.negate(LINE_ENDS))

---@class mcp-tools.schema.PatternParser: mcp-tools.schema.Scanner
---@field longest integer the highest count of a repetition
---@field items integer of the piece, repetitions written out
---@field groups boolean a group is repeated, or there is a choice
---@field anchors integer `^` and `$` so far
---@field repeated integer repetitions
---@field variable integer those whose count can vary
---@field unbounded integer repetitions without an upper limit
local Parser = setmetatable({}, { __index = Scanner })
Parser.__index = Parser

local refuse = Scanner.refuse

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
  self.repeated = self.repeated + 1
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
---@param wanted boolean
---@param anchored boolean
---@return mcp-tools.schema.PatternPiece
function Parser:piece(text, wanted, anchored)
  -- Long counts are for the backtracking engine, where it cannot go back far.
  local flat = anchored and not self.groups and self.variable <= 2 and self.unbounded <= 1
  if flat and self.longest > LONG_REPEAT then
    -- From each place where the first repetition may end, the second is tried.
    local steps = self.repeated > 1 and self.longest or 1
    return { text = '\\%#=1\\C\\V' .. text, wanted = wanted, steps = steps, flat = true }
  elseif self.longest > MAX_REPEAT then
    refuse('a long repetition beside others does not translate')
  end
  -- Each item can be a state that is reached from each other one; 10 for what every character takes.
  return { text = '\\%#=2\\C\\V' .. text, wanted = wanted, steps = self.items * (self.items + 10) }
end

--- Forgets what was counted, before the next piece.
function Parser:reset()
  self.longest, self.anchors, self.variable, self.unbounded, self.repeated = 0, 0, 0, 0, 0
  self.items = 0
  self.groups = false
end

---@class mcp-tools.schema.PatternPiece
---@field text string Vim pattern
---@field wanted boolean whether it must match
---@field steps integer for each character of a text, at worst; about 10 ns each
---@field flat boolean? no more steps for a character than the text has characters

--- All pieces: look-aheads right after a leading `^` are patterns of their own, then the rest.
---@return mcp-tools.schema.PatternPiece[]
function Parser:pieces()
  local out = {}
  if self:match('%^%(%?[=!]') then
    self.at = 2
    local look = self:match('%(%?([=!])')
    while look do
      self:reset()
      local body, items = self:choice()
      if not self:take(')') then
        refuse('a group is not closed')
      end
      self.items = items
      out[#out + 1] = self:piece('\\_^\\%(' .. body .. '\\)', look == '=', true)
      look = self:match('%(%?([=!])')
    end
  end
  self:reset()
  local ahead = #out > 0
  local text, items, branches = self:choice()
  if self.at <= #self.source then
    refuse('a bracket is not opened')
  elseif ahead and branches > 1 then
    refuse('a look-ahead beside a choice does not translate')
  end
  text = ahead and '\\_^' .. text or text
  self.items = items
  out[#out + 1] = self:piece(text, true, self.source:sub(1, 1) == '^')
  return out
end

--- Translates a pattern.
---@param source string
---@return mcp-tools.schema.PatternPiece[]? pieces
---@return string? why not
function M.translate(source)
  local parser = setmetatable({ source = source, at = 1 }, Parser)
  parser:reset()
  local ok, pieces = pcall(parser.pieces, parser)
  if ok then
    return pieces
  elseif getmetatable(pieces) == Scanner.Untranslatable then
    return nil, pieces.why
  end
  error(pieces, 0)
end

return M
