--- The user's current file, cursor position and visible lines.

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
function M.get(root)
  local bufnr = buffers.current()
  if not bufnr then
    return nil
  end
  local window = M.window(bufnr)
  local place = window and api.nvim_win_get_cursor(window) or api.nvim_buf_get_mark(bufnr, '"')
  local row = math.max(place[1], 1)
  local name = api.nvim_buf_get_name(bufnr)
  local ok, why = access.buffer(bufnr, root)
  local info = window and vim.fn.getwininfo(window)[1]
  local text = ok and api.nvim_buf_get_lines(bufnr, row - 1, row, false)[1] or nil
  return {
    path = name ~= '' and access.shown(name, root) or nil,
    bufnr = bufnr,
    line = row,
    column = position.column(bufnr, row - 1, place[2]),
    text = text and utf8.cut(text, MAX_LINE),
    withheld = why,
    first_visible_line = info and info.topline,
    last_visible_line = info and info.botline,
  }
end

return M
