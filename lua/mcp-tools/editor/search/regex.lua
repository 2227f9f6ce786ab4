--- Regular expressions as people write them for searches, translated to Vim's.
---
--- Receives: a pattern in the common part of Perl's, Rust's and JavaScript's notations.
--- Sends: the same for `vim.regex`, or what in it does not translate.
--- Does not know about: text, files.
---
--- What comes out is very magic (`\v`), and says itself whether case counts: no option of the person's changes it. It
--- goes to the engine that looks at each character once; word boundaries do not mean what 'iskeyword' says.
---
--- Longer than others by what a pattern costs, which is added up while it is read.
---
--- That engine cannot be stopped, so what a pattern costs per character is added up while it is read: `weight`.

local M = {}

--- Bytes.
local MAX = 1000
--- Of a count: the automaton grows with it.
local MAX_REPEAT = 1000

--- What words are made of, beyond ASCII too.
local W = '%(\\w|[^\\x01-\\x7f])'
local SLOW_EDGE = ('%%(%s@4<=%s@!|%s@4<!%s@=)'):format(W, W, W, W)
--- Vim's own, which depends on 'iskeyword' of the current buffer, and costs a hundredth.
local QUICK_EDGE = '%(<|>)'
local NO_WORD_EDGE = ('%%(%s@4<=%s@=|%s@4<!%s@!)'):format(W, W, W, W)

--- What items cost for each character of a line, in states of the automaton. Looking around multiplies its threads.
local GROUP, STAR, BRANCH, REFERENCE, LOOK = 6, 4, 6, 400, 800
--- Of each edge of a word with each `*` or `+`: threads are told apart by what they have still to look at.
local EDGE_AND_STAR = 20
--- A heavier pattern is refused.
local MAX_WEIGHT = 10000

local ASCII = {}
for byte = 1, 127 do
  ASCII[byte] = string.char(byte)
end
local WORDS = table.concat(ASCII):gsub('[^%w_]', '')

--- Has 'iskeyword' its usual meaning now?
---@return boolean
local function has_usual_words()
  local keyword, words = vim.regex('\\%#=2\\k'), {}
  for _, char in ipairs(ASCII) do
    if keyword:match_str(char) then
      words[#words + 1] = char
    end
  end
  return table.concat(words) == WORDS
end

--- Of `\d` and the like, alone.
local CLASSES = { d = '\\d', D = '\\D', w = '\\w', W = '\\W', s = '[ \\t\\r]', S = '[^ \\t\\r]', h = '[ \\t]' }
--- In brackets.
local IN_SET = { d = '0-9', w = '0-9A-Za-z_', s = ' \\t\\r', h = ' \\t' }
local CONTROL = { t = '\\t', r = '\\r', f = '%x0c', v = '%x0b', a = '%x07', e = '\\e', ['0'] = '%x00' }

---@class mcp-tools.search.Regex
---@field text string
---@field at integer
---@field out string[]
---@field groups integer
---@field open integer
---@field weight number so far
---@field outer number[] weight before each group that is open
---@field edge string
---@field edges integer
---@field stars integer
---@field times number how often groups are repeated
local Reader = {}
Reader.__index = Reader

---@param message string
local function refuse(message)
  error({ regex = message }, 0)
end

---@param pattern string
---@return string?
function Reader:take(pattern)
  local found, after = self.text:match('^(' .. pattern .. ')()', self.at)
  if found then
    self.at = after
  end
  return found
end

---@param char string
---@return string
local function literal(char)
  if char:find('^[%w_]$') or char:byte() >= 128 then
    return char
  end
  return '\\' .. char
end

--- A character by its number: `\x41`, `\x{41}`, `\u0041`.
---@param kind string
---@return string?
function Reader:number(kind)
  local hex = self.text:match('^{(%x+)}', self.at)
  if hex then
    self.at = self.at + #hex + 2
  else
    hex = self:take(kind == 'x' and '%x%x' or '%x%x%x%x')
  end
  local code = hex and tonumber(hex, 16)
  if not code or code > 0x10FFFF or code == 0 then
    refuse('\\' .. kind .. ' needs the number of a character')
  end
  return vim.fn.nr2char(code --[[@as integer]], 1)
end

---@return string
function Reader:escape()
  local char = self:take('.')
  if not char then
    refuse('it ends with a backslash')
  elseif CLASSES[char] then
    return CLASSES[char]
  elseif char == 'b' then
    self.edges = self.edges + 1
    self.weight = self.weight + (self.edge == SLOW_EDGE and LOOK or GROUP)
    return self.edge
  elseif char == 'B' then
    self.weight = self.weight + LOOK
    return NO_WORD_EDGE
  elseif CONTROL[char] then
    return (CONTROL[char]:gsub('^%%x', '%%%%x'))
  elseif char == 'x' or char == 'u' then
    return literal(self:number(char) --[[@as string]])
  elseif char:find('[1-9]') then
    if tonumber(char) > self.groups then
      refuse(('\\%s: there is no such group before it'):format(char))
    end
    self.weight = self.weight + REFERENCE
    return '\\' .. char
  elseif char:find('[AZz]') then
    return char == 'A' and '\\_^' or '\\_$'
  elseif char == 'n' then
    refuse('lines are looked at one by one, so \\n is nowhere; look for plain text of several lines without regex')
  elseif char:find('%w') then
    refuse('\\' .. char .. ' is not known here')
  end
  return literal(char --[[@as string]])
end

--- A set in brackets.
---@return string
function Reader:set()
  local out, first = { self:take('%^') and '[^' or '[' }, true
  while true do
    local class = self:take('%[:%^?%a+:%]')
    local char = not class and self:take('[%z\1-\127\194-\244][\128-\191]*')
    if class then
      table.insert(out, class)
    elseif not char then
      refuse('a [ is not closed')
    elseif char == ']' and not first then
      return table.concat(out) .. ']'
    elseif char == '\\' then
      local escaped = self:take('.') or ''
      if IN_SET[escaped] then
        table.insert(out, IN_SET[escaped])
      elseif escaped == 'x' or escaped == 'u' then
        table.insert(out, self:number(escaped) --[[@as string]])
      elseif escaped:find('[tr]') then
        table.insert(out, '\\' .. escaped)
      elseif escaped:find('[%w]') then
        refuse(('\\%s in [ ] is not known here'):format(escaped))
      else
        table.insert(out, ('\\x%02x'):format(escaped:byte() or 0x5c))
      end
    elseif char:find('^[%[%]%^\\]$') then
      table.insert(out, ('\\x%02x'):format(char:byte()))
    else
      table.insert(out, char)
    end
    first = false
  end
end

--- How often, behind an item.
---@param before number weight without the item
---@param is_group? boolean
---@return string
function Reader:repetition(before, is_group)
  local sign = self:take('[*+?]')
  local lazy
  if sign then
    lazy = self:take('%?')
    if self:take('%+') then
      refuse('possessive repetitions are not known here')
    end
    self.weight, self.stars = self.weight + STAR, self.stars + 1
    return lazy and ({ ['*'] = '{-}', ['+'] = '{-1,}', ['?'] = '{-0,1}' })[sign] or sign
  end
  local min, comma, max = self.text:match('^{(%d+)(,?)(%d*)}', self.at)
  if not min then
    return ''
  end
  self:take('%b{}')
  lazy = self:take('%?')
  if tonumber(min) > MAX_REPEAT or (tonumber(max) or 0) > MAX_REPEAT then
    refuse(('counts go to %d'):format(MAX_REPEAT))
  end
  local count = math.max(tonumber(min) --[[@as integer]], tonumber(max) or 0, 1)
  self.weight = before + (self.weight - before) * count
  self.stars = self.stars + (comma ~= '' and max == '' and 1 or 0)
  self.times = is_group and self.times * count or self.times
  return ('{%s%s%s%s}'):format(lazy and '-' or '', min, comma, max)
end

---@return string
function Reader:group()
  self.open = self.open + 1
  self.outer[self.open] = self.weight
  self.weight = self.weight + GROUP
  if self:take('%?:') then
    return '%('
  elseif self:take('%?P?<[%a_][%w_]*>') or not self:take('%?') then
    self.groups = self.groups + 1
    return '('
  end
  refuse('look-arounds and flags within the pattern are not known here')
  return ''
end

---@return string
function Reader:all()
  while self.at <= #self.text do
    local item
    if self:take('%(') then
      item = self:group()
    elseif self:take('%)') then
      self.open = self.open - 1
      if self.open < 0 then
        refuse('a ) has no (')
      end
      item = ')' .. self:repetition(self.outer[self.open + 1], true)
    elseif self:take('|') then
      self.weight = self.weight + BRANCH
      item = '|'
    elseif self:take('%^') then
      item = '\\_^'
    elseif self:take('%$') then
      item = '\\_$'
    else
      local before = self.weight
      self.weight = before + 1
      if self:take('%[') then
        item = self:set()
      elseif self:take('\\') then
        item = self:escape()
      elseif self:take('%.') then
        item = '.'
      elseif self.text:find('^[*+?]', self.at) then
        refuse('there is nothing to repeat before ' .. self.text:sub(self.at, self.at))
      else
        item = literal(self:take('[%z\1-\127\194-\244][\128-\191]*') or self:take('.') --[[@as string]])
      end
      item = item .. self:repetition(before)
    end
    table.insert(self.out, item)
  end
  if self.open > 0 then
    refuse('a ( is not closed')
  end
  return table.concat(self.out)
end

---@class mcp-tools.search.Compiled
---@field text string for Vim
---@field regex vim.regex
---@field groups integer
---@field weight number what it costs for each character of a line, at worst

--- Translates a pattern.
---@param source string
---@param opts { ignore_case: boolean?, word: boolean?, literal: boolean? }
---@return mcp-tools.search.Compiled?
---@return string? why there is none
function M.compile(source, opts)
  if #source > MAX then
    return nil, ('it is longer than %d bytes'):format(MAX)
  end
  local ignore = opts.ignore_case
  local rest = not opts.literal and source:match('^%(%?i%)(.*)$')
  if rest then
    source, ignore = rest, true
  end
  local edge = has_usual_words() and QUICK_EDGE or SLOW_EDGE
  local reader = setmetatable({ text = source, at = 1, out = {}, groups = 0, open = 0, edge = edge }, Reader)
  reader.weight, reader.outer, reader.edges, reader.stars, reader.times = 1, {}, 0, 0, 1
  local ok, made = pcall(function()
    if opts.literal then
      return (source:gsub('[%z\1-\127]', literal))
    end
    return reader:all()
  end)
  if not ok then
    return nil, type(made) == 'table' and made.regex or tostring(made)
  elseif opts.word then
    made = ('%s%%(%s)%s'):format(edge, made, edge)
    reader.weight = reader.weight + 2 * (edge == SLOW_EDGE and LOOK or GROUP)
  end
  local weight = reader.weight + reader.edges * reader.stars * EDGE_AND_STAR * reader.times ^ 2
  if weight > MAX_WEIGHT then
    return nil, 'it would take too long; give smaller counts, or fewer \\b, \\B and \\1'
  end
  local text = ('\\%%#=2\\v%s%s'):format(ignore and '\\c' or '\\C', made)
  local compiled, regex = pcall(vim.regex, text)
  if not compiled then
    return nil, 'Vim does not take its translation'
  end
  return { text = text, regex = regex, groups = reader.groups, weight = weight }
end

return M
