--- Matches as text: each file once, then `line:column: text` for each match.

local result = require('mcp-tools.editor.result')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum number of characters of a line, and of them before the match.
local MAX_LINE, BEFORE = 200, 80
--- Bytes of a longer line that are read: enough for the characters that are shown.
local WINDOW, WINDOW_BEFORE = 4 * (MAX_LINE + BEFORE), 4 * BEFORE

--- Returns a reader of the lines of a text, which finds them on demand.
---@param text string
---@return fun(row: integer): string? from 0
function M.rows(text)
  local starts, last = { [0] = 1 }, 0
  local kept_row, kept
  return function(row)
    if row == kept_row then
      return kept
    end
    while last < row do
      local stop = text:find('\n', starts[last], true)
      if not stop or stop == #text then
        return nil
      end
      last = last + 1
      starts[last] = stop + 1
    end
    local from = starts[row]
    local stop = (text:find('\n', from, true) or #text + 1) - 1
    kept_row, kept = row, text:sub(from, text:byte(stop) == 13 and stop - 1 or stop)
    return kept
  end
end

--- Returns a function that converts bytes to columns, and continues from the previous one on the same line.
---@return fun(line: string, col: integer): integer column from 1, of a byte from 0
function M.columns()
  local last_line, last_col, characters
  return function(line, col)
    if line ~= last_line or col < last_col then
      last_line, last_col, characters = line, 0, 0
    end
    characters = characters + position.characters(line:sub(last_col + 1, col))
    last_col = col
    return characters + 1
  end
end

---@param line string
---@param byte integer from 0
---@return integer byte start of the character that contains it
local function character_start(line, byte)
  for at = byte, math.max(0, byte - 3), -1 do
    local b = line:byte(at + 1)
    if not b or b < 128 or b >= 192 then
      return at
    end
  end
  return byte
end

--- Returns a line for display, shortened around the match.
---@param line string
---@param col? integer bytes from 0
---@return string
function M.shown(line, col)
  local from, to = 0, #line
  if to > WINDOW then
    from = character_start(line, math.max(0, math.min((col or 0) - WINDOW_BEFORE, to - WINDOW)))
    to = character_start(line, math.min(to, from + WINDOW))
  end
  local text = utf8.repair(line:sub(from + 1, to))
  local length = position.characters(text)
  local is_cut, is_cut_before = to < #line, from > 0
  if length > MAX_LINE then
    local at = col and position.characters(text:sub(1, col - from)) or 0
    local first = math.max(0, math.min(at - BEFORE, length - MAX_LINE))
    text = vim.fn.strcharpart(text:gsub('%z', '\n'), first, MAX_LINE)
    is_cut, is_cut_before = is_cut or first + MAX_LINE < length, is_cut_before or first > 0
  end
  text = (is_cut_before and '…' or '') .. text .. (is_cut and '…' or '')
  return redact.quoted((text:gsub('%c', function(char)
    return char == '\t' and char or '?'
  end)))
end

---@param file mcp-tools.search.File
---@param from integer
---@param to integer first and last index of its matches
---@param context integer
---@param out string[]
---@param pause fun()
local function add(file, from, to, context, out, pause)
  local row_of, printed, is_match = M.rows(file.text), -1, {}
  for i = from, to do
    is_match[file.matches[i].row] = is_match[file.matches[i].row] or file.matches[i]
  end
  table.insert(out, file.shown .. (file.unsaved and ' (unsaved)' or ''))
  for i = from, to do
    local row = file.matches[i].row
    if context > 0 and printed >= 0 and row - context > printed + 1 then
      table.insert(out, '  --')
    end
    for each = math.max(row - context, printed + 1, 0), row + context do
      local match, line = is_match[each], row_of(each)
      if line and match then
        local column = position.characters(line:sub(1, match.col)) + 1
        table.insert(out, ('  %d:%d: %s'):format(each + 1, column, M.shown(line, match.col)))
      elseif line then
        table.insert(out, ('  %d- %s'):format(each + 1, M.shown(line)))
      end
      pause()
      printed = math.max(printed, each)
    end
  end
end

--- Returns the text of one page of matches.
---@param found mcp-tools.search.Found
---@param opts { limit: integer, offset: integer }
---@param context integer
---@param pause fun()
---@return string[]
local function places(found, opts, context, pause)
  local out, passed, left = {}, 0, opts.limit
  for _, file in ipairs(found.files) do
    local from = math.max(1, opts.offset - passed + 1)
    local to = math.min(#file.matches, from + left - 1)
    if from <= to and left > 0 then
      add(file, from, to, context, out, pause)
      left = left - (to - from + 1)
    end
    passed = passed + #file.matches
  end
  return out
end

---@param found mcp-tools.search.Found
---@param opts { limit: integer, offset: integer }
---@return string
local function head(found, opts)
  local text = ('%d%s matches in %d files'):format(found.total, found.cut and '+' or '', #found.files)
  local last = math.min(opts.offset + opts.limit, found.total)
  if opts.offset > 0 or last < found.total then
    text = ('%s; %d-%d shown'):format(text, math.min(opts.offset + 1, last), last)
    text = text .. (last < found.total and (', offset=%d goes on'):format(last) or '')
  end
  if found.skipped > 0 then
    text = ('%s; %d files are too large to be searched'):format(text, found.skipped)
  end
  return text
end

--- Returns the answer to a search.
---@param found mcp-tools.search.Found
---@param opts { limit: integer, offset: integer, context: integer }
---@param pause fun() called between pieces of work
---@return string
function M.of(found, opts, pause)
  local function with(context, without)
    return {
      without = without,
      text = function()
        local rows = places(found, opts, context, pause)
        table.insert(rows, 1, head(found, opts))
        return table.concat(rows, '\n')
      end,
    }
  end
  local variants = { with(opts.context) }
  if opts.context > 0 then
    table.insert(variants, with(0, 'context'))
  end
  table.insert(variants, {
    without = 'lines, so counts per file',
    text = function()
      local rows = { head(found, { limit = math.huge, offset = 0 }) }
      for _, file in ipairs(found.files) do
        table.insert(rows, ('%s: %d'):format(file.shown, #file.matches))
      end
      return table.concat(rows, '\n')
    end,
  })
  table.insert(variants, {
    without = 'files to be named, so the total',
    text = function()
      return head(found, { limit = math.huge, offset = 0 })
    end,
  })
  return result.longest(variants, 'narrow it with path, globs or limit')
end

return M
