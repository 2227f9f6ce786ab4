--- The user's current file, cursor, visible lines and selection.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local position = require('mcp-tools.editor.position')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

local M = {}

--- Maximum number of bytes of the line's text.
local MAX_LINE = 2000

--- Returns the current, previous or any other window of a buffer.
---@param bufnr integer
---@return integer? window
function M.window(bufnr)
  local window = api.nvim_get_current_win()
  if api.nvim_win_get_buf(window) == bufnr then
    return window
  end
  local previous = vim.fn.win_getid(vim.fn.winnr('#'))
  if previous > 0 and api.nvim_win_get_buf(previous) == bufnr then
    return previous
  end
  return vim.fn.win_findbuf(bufnr)[1]
end

--- Returns the position of the cursor in a buffer; the last one if it has no window.
---@param bufnr integer
---@return integer line from 1
---@return integer byte from 0
---@return integer? window
function M.place(bufnr)
  local window = M.window(bufnr)
  local line, byte = unpack(window and api.nvim_win_get_cursor(window) or api.nvim_buf_get_mark(bufnr, '"'))
  return math.max(1, math.min(line, api.nvim_buf_line_count(bufnr))), byte, window
end

---@class mcp-tools.Cursor
---@field path string? relative to the root
---@field bufnr integer
---@field line integer
---@field column integer counted in characters
---@field text string? text of the line
---@field withheld mcp-tools.Unreadable?
---@field first_visible_line integer?
---@field last_visible_line integer?
---@field [string] any what a tool adds

--- Returns the cursor in the current buffer.
---@param root string
---@return mcp-tools.Cursor?
function M.cursor(root)
  local bufnr = buffers.current()
  if not bufnr then
    return nil
  end
  local row, byte, window = M.place(bufnr)
  local name = api.nvim_buf_get_name(bufnr)
  local ok, why = access.buffer(bufnr, root)
  local info = window and vim.fn.getwininfo(window)[1]
  local text = ok and api.nvim_buf_get_lines(bufnr, row - 1, row, false)[1] or nil
  return {
    path = name ~= '' and access.shown(name, root) or nil,
    bufnr = bufnr,
    line = row,
    column = position.column(bufnr, row - 1, byte),
    text = text and utf8.cut(text, MAX_LINE),
    withheld = why,
    first_visible_line = info and info.topline,
    last_visible_line = info and info.botline,
  }
end

--- Maximum size of the selected lines in bytes; copying more would block the main thread.
local MAX_BYTES = 4 * 1024 * 1024

local MODES = { v = 'characters', V = 'lines', ['\22'] = 'block' }

---@class mcp-tools.Selection
---@field path string? relative to the root
---@field bufnr integer
---@field filetype string?
---@field mode 'characters'|'lines'|'block'
---@field active boolean whether visual mode is active
---@field truncated boolean? the text is not complete
---@field start_line integer
---@field start_column integer
---@field end_line integer
---@field end_column integer of the last selected character
---@field text string? nil: withheld
---@field withheld (mcp-tools.Unreadable|'too large')?

--- Returns both ends of the visual selection in the form of getpos(), the earlier one first.
---@return integer[]? from nil: not in visual mode
---@return integer[]? to
---@return string? mode
function M.visual()
  local mode = vim.fn.mode()
  if not MODES[mode] then
    return nil
  end
  local from, to = vim.fn.getpos('v'), vim.fn.getpos('.')
  if from[2] > to[2] or (from[2] == to[2] and from[3] > to[3]) then
    from, to = to, from
  end
  return from, to, mode
end

--- Returns the text between two positions.
---@param bufnr integer loaded
---@param from integer[] as returned by getpos()
---@param to integer[]
---@param mode string
---@return string
function M.text_between(bufnr, from, to, mode)
  if mode == 'V' then
    return table.concat(api.nvim_buf_get_lines(bufnr, from[2] - 1, to[2], false), '\n')
  end
  local pieces = api.nvim_buf_call(bufnr, function()
    return vim.fn.getregion(from, to, { type = mode })
  end)
  return table.concat(
    vim.tbl_map(function(piece)
      return (piece:gsub('\n', '\0')) -- Vim's functions represent NUL as a line break
    end, pieces),
    '\n'
  )
end

--- Returns both ends of the current or last selection in the form of getpos(), the earlier one first.
---@param bufnr integer
---@return integer[]? from, integer[]? to, string? mode, boolean? active
local function ends(bufnr)
  local a, b, mode = M.visual()
  if a and api.nvim_get_current_buf() == bufnr then
    return a, b, mode, true
  end
  local from, to, kind
  api.nvim_buf_call(bufnr, function()
    from, to, kind = vim.fn.getpos("'<"), vim.fn.getpos("'>"), vim.fn.visualmode()
  end)
  if from[2] == 0 or not MODES[kind] or to[2] > api.nvim_buf_line_count(bufnr) then
    return nil
  end
  return from, to, kind, false
end

--- Moves a position to the first byte of an existing character: marks keep their byte when the line changes.
---@param place integer[]
---@param line string
---@return integer[]
local function within(place, line)
  local byte, off = place[3], place[4]
  if byte > #line + 1 then
    byte, off = math.max(#line, 1), 0
  end
  if byte <= #line then
    byte = byte + vim.str_utf_start(line, byte)
  end
  return { place[1], place[2], byte, off }
end

--- Returns the selection.
---@param root string
---@return mcp-tools.Selection?
function M.selection(root)
  local bufnr = buffers.current()
  local from, to, kind, active = nil, nil, nil, nil
  if bufnr then
    from, to, kind, active = ends(bufnr)
  end
  if not from then
    return nil
  end
  local first, last = from[2], to[2]
  local is_large = api.nvim_buf_get_offset(bufnr, last) - api.nvim_buf_get_offset(bufnr, first - 1) > MAX_BYTES
  local first_text = api.nvim_buf_get_lines(bufnr, first - 1, first, false)[1]
  local last_text = api.nvim_buf_get_lines(bufnr, last - 1, last, false)[1]
  from, to = within(from, first_text), within(to, last_text)
  local to_byte = math.min(to[3], math.max(#last_text, 1))
  local name = api.nvim_buf_get_name(bufnr)
  local whole = kind == 'V'
  local selection = {
    path = name ~= '' and access.shown(name, root) or nil,
    bufnr = bufnr,
    filetype = vim.bo[bufnr].filetype ~= '' and vim.bo[bufnr].filetype or nil,
    mode = MODES[kind],
    active = active,
    start_line = first,
    start_column = whole and 1 or position.column(bufnr, first - 1, from[3] - 1),
    end_line = last,
    end_column = whole and math.max(position.characters(last_text), 1) or position.column(bufnr, last - 1, to_byte - 1),
  }
  local ok, why = access.buffer(bufnr, root)
  if not ok or is_large then
    selection.withheld = why or 'too large'
    return selection
  end
  selection.text = M.text_between(bufnr, from, to, kind)
  return selection
end

return M
