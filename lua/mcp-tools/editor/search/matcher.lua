--- A query, ready to be looked for in texts.
---
--- Receives: what to look for, plain or as a regular expression; texts.
--- Sends: the places where it stands, lines and bytes.
--- Does not know about: files, buffers.

local errors = require('mcp-tools.errors')
local regex = require('mcp-tools.editor.search.regex')
local substring = require('mcp-tools.util.substring')

local M = {}

--- Bytes of a line that a regular expression is tried on; longer ones were written by programs.
local MAX_LINE = 20000
--- What stands for a NUL, which Vim's functions do not take.
local NUL = '\1'
--- Of a line, times what the expression costs for each: some 40 ms, in which nothing can stop it.
local MAX_WORK = 1000000

---@class mcp-tools.search.Query
---@field query string
---@field regex boolean?
---@field ignore_case boolean?
---@field word boolean? whole words alone

---@class mcp-tools.search.Match
---@field row integer from 0
---@field col integer bytes from 0
---@field end_row integer
---@field end_col integer

---@class mcp-tools.search.Matcher
---@field query mcp-tools.search.Query
---@field compiled mcp-tools.search.Compiled? nil: found as it stands
---@field folded string?
---@field breaks integer? lines that end in it
---@field tail integer? bytes of its last line
---@field find? fun(text: string, from: integer): integer?, integer?
---@field passed integer lines that the regular expression was not tried on
local Matcher = {}
Matcher.__index = Matcher

---@param byte integer?
local function is_word(byte)
  return byte ~= nil and (byte >= 128 or string.char(byte):find('[%w_]') ~= nil)
end

--- Makes a matcher.
---@param query mcp-tools.search.Query
---@return mcp-tools.search.Matcher?
---@return mcp-tools.Error? err
function M.new(query)
  local made = setmetatable({ query = query, passed = 0 }, Matcher)
  if query.query == '' then
    return nil, errors.new('validation_error', 'query: it is empty')
  elseif query.query:find('%z') then
    return nil, errors.new('validation_error', 'query: it holds a NUL byte')
  end
  local folds = query.ignore_case and query.query:find('[\128-\255]') ~= nil
  if query.regex or folds and not query.query:find('\n', 1, true) then
    local opts = { ignore_case = query.ignore_case, word = query.word, literal = not query.regex }
    local compiled, why = regex.compile(query.query, opts)
    if not compiled then
      return nil, errors.new('validation_error', ('query: this regular expression cannot be used: %s'):format(why))
    end
    made.compiled = compiled
  else
    made.folded = query.ignore_case and query.query:lower() or query.query
    made.find = substring.finder(made.folded)
    made.breaks = select(2, made.folded:gsub('\n', ''))
    made.tail = #made.folded - (made.folded:match('^.*()\n') or 0)
  end
  return made
end

--- Plain text, found in the whole.
---@param text string
---@param found fun(match: mcp-tools.search.Match): boolean?
---@param pause fun()
function Matcher:plain(text, found, pause)
  local haystack = self.query.ignore_case and text:lower() or text
  local needle = self.folded --[[@as string]]
  local row, line_at, scanned = 0, 1, 1
  local breaks, tail = self.breaks, self.tail
  local at, count = 1, 0
  while true do
    local first, last = self.find(haystack, at)
    if not first then
      return
    end
    local whole = not self.query.word
      or not (is_word(needle:byte(1)) and is_word(text:byte(first - 1)))
        and not (is_word(needle:byte(-1)) and is_word(text:byte(last + 1)))
    if whole then
      while true do
        local stop = text:find('\n', scanned, true)
        if not stop or stop >= first then
          break
        end
        row, line_at, scanned = row + 1, stop + 1, stop + 1
      end
      local col = first - line_at
      local enough = found({
        row = row,
        col = col,
        end_row = row + breaks,
        end_col = breaks == 0 and col + #needle or tail,
      })
      if enough then
        return
      end
    end
    at = whole and last + 1 or first + 1
    count = count + 1
    if count % 100 == 0 then
      pause()
    end
  end
end

--- Where the expression first matches. What Vim gives up on for want of memory would be shown to the person, if it
--- were not called by a function of Vim's.
---@param line string
---@return integer? first
---@return integer? last
function Matcher:first(line)
  local first, last
  local ok = pcall(vim.fn.call, function()
    first, last = self.compiled.regex:match_str(line)
  end, {})
  if not ok then
    self.passed = self.passed + 1
  end
  return first, last
end

--- The next match.
---@param line string
---@param from integer bytes
---@return integer? first
---@return integer? last
function Matcher:next(line, from)
  -- With a count the text before still counts for `^` and edges of words.
  local ok, match = pcall(vim.fn.matchstrpos, line, self.compiled.text, from, 1)
  if not ok then
    self.passed = self.passed + 1
    return nil, nil
  end
  return match[2], match[3]
end

---@param line string
---@param row integer
---@param found fun(match: mcp-tools.search.Match): boolean?
---@param pause fun()
---@return boolean? enough
function Matcher:in_line(line, row, found, pause)
  local first, last = self:first(line)
  while first and first >= 0 do
    if last > first and found({ row = row, col = first, end_row = row, end_col = last }) then
      return true
    end
    local from = last > first and last or last + 1
    if from > #line then
      return
    end
    pause()
    first, last = self:next(line, from)
  end
end

--- Calls `found` for each place, in order, until it returns true.
---@param text string lines end with "\n"
---@param found fun(match: mcp-tools.search.Match): boolean?
---@param pause? fun() called between pieces of work
function Matcher:each(text, found, pause)
  pause = pause or function() end
  if not self.compiled then
    return self:plain(text, found, pause)
  end
  local at, row = 1, 0
  local longest = math.min(MAX_LINE, MAX_WORK / self.compiled.weight)
  while at <= #text do
    local stop = text:find('\n', at, true) or #text + 1
    if stop - at > longest then
      self.passed = self.passed + 1
    else
      local line = text:sub(at, stop - 1)
      line = line:sub(-1) == '\r' and line:sub(1, -2) or line
      line = line:gsub('%z', NUL)
      if self:in_line(line, row, found, pause) then
        return
      end
    end
    at, row = stop + 1, row + 1
    pause()
  end
end

--- Makes what tells what a place becomes: `$1` and `$0` of a regular expression are what its groups matched, `$$` is a
--- dollar.
---@param replacement string
---@return fun(line: string, match: mcp-tools.search.Match, room: integer): string? replaced the line is that of the
---  match; nil: there would be more than `room` bytes, which are not made
function Matcher:replacer(replacement)
  local counts, literal = {}, #replacement
  if self.query.regex then
    for which in replacement:gmatch('%$([%d$])') do
      counts[which] = (counts[which] or 0) + 1
      literal = literal - 2
    end
  end
  return function(line, match, room)
    if not next(counts) then
      return #replacement <= room and replacement or nil
    end
    local plain, nuls = line:gsub('%z', NUL)
    local groups = vim.fn.matchlist(plain, self.compiled.text, match.col)
    local texts, size = {}, literal
    for which, count in pairs(counts) do
      local text = which == '$' and '$' or groups[tonumber(which) + 1] or ''
      texts[which] = nuls > 0 and text:gsub(NUL, '\0') or text
      size = size + count * #text
    end
    return size <= room and (replacement:gsub('%$([%d$])', texts)) or nil
  end
end

return M
