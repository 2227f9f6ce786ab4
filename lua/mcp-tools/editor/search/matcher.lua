--- Searches for plain text. Regular expressions: engine.lua.

local errors = require('mcp-tools.errors')
local substring = require('mcp-tools.util.substring')

local M = {}

---@class mcp-tools.search.Query
---@field query string
---@field regex boolean?
---@field ignore_case boolean?
---@field word boolean? only whole words

---@class mcp-tools.search.Match
---@field row integer from 0
---@field col integer bytes from 0
---@field end_row integer
---@field end_col integer

---@class mcp-tools.search.Matcher
---@field query mcp-tools.search.Query
---@field needle string
---@field is_lower boolean? texts are converted to lower case first
---@field breaks integer number of line breaks in it
---@field tail integer length of its last line, in bytes
---@field find fun(text: string, from: integer, pause: fun()): integer?, integer?
local Matcher = {}
Matcher.__index = Matcher

---@param byte integer?
local function is_word(byte)
  return byte ~= nil and (byte >= 128 or string.char(byte):find('[%w_]') ~= nil)
end

--- Returns why a query is invalid.
---@param query mcp-tools.search.Query
---@return mcp-tools.Error?
function M.refusal(query)
  if query.query == '' then
    return errors.new('validation_error', 'query: must not be empty')
  elseif query.query:find('%z') then
    return errors.new('validation_error', 'query: must not contain NUL')
  end
end

--- Number of bytes that Vim searches at once.
local WINDOW = 16384

--- Finds text with other than ASCII characters in any case. Vim folds case; a literal pattern takes linear time.
---@param needle string one line
---@return fun(text: string, from: integer, pause: fun()): integer?, integer?
local function folding_finder(needle)
  local regex = vim.regex('\\V\\c' .. needle:gsub('\\', '\\\\'))
  local overlap = 4 * #needle -- a character in another case may have more bytes
  return function(text, from, pause)
    local size = math.max(WINDOW, 2 * overlap)
    while from <= #text do
      local first, last = regex:match_str((text:sub(from, from + size - 1):gsub('%z', '\1')))
      if first then
        return from + first, from + last - 1
      elseif from + size > #text then
        return nil
      end
      from = from + size - overlap
      pause()
    end
  end
end

--- Returns a matcher for a query that is not a regular expression.
---@param query mcp-tools.search.Query
---@return mcp-tools.search.Matcher
function M.new(query)
  local made = setmetatable({ query = query, needle = query.query }, Matcher)
  if query.ignore_case and query.query:find('[\128-\255]') and not query.query:find('\n', 1, true) then
    made.find = folding_finder(query.query)
  else
    made.needle = query.ignore_case and query.query:lower() or query.query
    made.is_lower = query.ignore_case
    made.find = substring.finder(made.needle)
  end
  made.breaks = select(2, made.needle:gsub('\n', ''))
  made.tail = #made.needle - (made.needle:match('^.*()\n') or 0)
  return made
end

--- Calls `found` for each match, in order, until it returns true.
---@param text string lines end with "\n"
---@param found fun(match: mcp-tools.search.Match): boolean?
---@param pause? fun() called between pieces of work
function Matcher:each(text, found, pause)
  pause = pause or function() end
  local haystack = self.is_lower and text:lower() or text
  local needle = self.needle
  local row, line_at, at = 0, 1, 1
  local stop = text:find('\n', 1, true) -- end of the current line
  while true do
    local first, last = self.find(haystack, at, pause)
    if not first then
      return
    end
    local whole = not self.query.word
      or not (is_word(needle:byte(1)) and is_word(text:byte(first - 1)))
        and not (is_word(needle:byte(-1)) and is_word(text:byte(last + 1)))
    if whole then
      while stop and stop < first do
        row, line_at = row + 1, stop + 1
        stop = text:find('\n', line_at, true)
      end
      local col = first - line_at
      local enough = found({
        row = row,
        col = col,
        end_row = row + self.breaks,
        end_col = self.breaks == 0 and last + 1 - line_at or self.tail,
      })
      if enough then
        return
      end
    end
    at = whole and last + 1 or first + 1
    pause()
  end
end

return M
