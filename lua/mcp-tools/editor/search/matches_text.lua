--- Results of searches as text: lines around matches, counts.

local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local result = require('mcp-tools.editor.result')
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

---@param line string
---@param byte integer from 0
---@return integer byte start of the character that contains it
local function character_start(line, byte)
  return byte < #line and byte + vim.str_utf_start(line, byte + 1) or byte
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

--- Returns as much as fits of a result: its lines, or else counts per file, or else the first line.
---@generic T
---@param head string first line
---@param variants mcp-tools.Variant[] with lines
---@param files T[]
---@param row_of fun(file: T): string name and count
---@param left_out string what counts per file omit
---@return string
function M.fitting(head, variants, files, row_of, left_out)
  return result.longest(
    vim.list_extend(variants, {
      {
        without = left_out .. ', only counts per file',
        text = function()
          return vim.list_extend({ head }, vim.tbl_map(row_of, files))
        end,
      },
      { without = 'files, only the total', text = head },
    }),
    'narrow it with path, globs or limit'
  )
end

return M
