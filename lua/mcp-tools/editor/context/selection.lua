--- The user's selection, kept after visual mode until the cursor moves or the text changes.
---
--- So the selection is still available after the user has switched to the agent's terminal.

local buffers = require('mcp-tools.editor.buffer')
local location = require('mcp-tools.editor.context.location')
local user_selection = require('mcp-tools.editor.user.selection')
local utf8 = require('mcp-tools.util.utf8')

local api, fn = vim.api, vim.fn

local M = {}

--- Maximum size of the selected text in bytes, since it is copied at every pause. The range is not limited.
local MAX_BYTES = 64 * 1024

---@class mcp-tools.context.Selection
---@field start mcp-tools.context.Position
---@field finish mcp-tools.context.Position after the last character
---@field text string

---@class mcp-tools.context.Kept the selection when visual mode ended
---@field bufnr integer
---@field tick integer
---@field cursor integer[]
---@field mode string
---@field from integer[] as returned by getpos()
---@field to integer[]

local kept ---@type mcp-tools.context.Kept?

--- Returns the text between two positions.
---@param bufnr integer
---@param from integer[]
---@param to integer[]
---@param mode string
---@return string
local function text_of(bufnr, from, to, mode)
  local count = to[2] - from[2] + 1
  local lines = buffers.some_lines(bufnr, from[2], count, MAX_BYTES)
  if mode == 'V' or #lines < count then
    return utf8.cut(table.concat(lines, '\n'), MAX_BYTES)
  end
  return utf8.cut(user_selection.text(bufnr, from, to, mode), MAX_BYTES)
end

--- Returns row and byte after the character at a position.
---@param bufnr integer
---@param at integer[]
---@return integer row
---@return integer byte
local function after(bufnr, at)
  local line = api.nvim_buf_get_lines(bufnr, at[2] - 1, at[2], false)[1] or ''
  if at[3] > #line then
    return at[2] - 1, #line
  end
  return at[2] - 1, at[3] + vim.str_utf_end(line, math.max(at[3], 1))
end

---@param bufnr integer
---@param from integer[]
---@param to integer[]
---@param mode string
---@return mcp-tools.context.Selection?
local function selection_of(bufnr, from, to, mode)
  local last = api.nvim_buf_line_count(bufnr)
  if from[2] < 1 or to[2] > last then
    return nil
  end
  local start, finish
  if mode == 'V' then
    start, finish = location.position(bufnr, from[2] - 1, 0), location.position(bufnr, to[2] - 1, math.huge)
  else
    start, finish = location.position(bufnr, from[2] - 1, from[3] - 1), location.position(bufnr, after(bufnr, to))
  end
  return { start = start, finish = finish, text = text_of(bufnr, from, to, mode) }
end

--- Keeps the selection when visual mode ends.
---@param mode string the mode that ended
function M.left(mode)
  if #mode > 1 then -- for example "vs", Visual mode for one command
    return
  end
  local bufnr = api.nvim_get_current_buf()
  kept = {
    bufnr = bufnr,
    tick = api.nvim_buf_get_changedtick(bufnr),
    cursor = api.nvim_win_get_cursor(0),
    mode = mode,
    from = fn.getpos("'<"),
    to = fn.getpos("'>"),
  }
end

--- Returns the selection in a window.
---@param window integer?
---@param bufnr integer loaded
---@return mcp-tools.context.Selection?
function M.get(window, bufnr)
  local from, to, mode = user_selection.visual()
  if from and window == api.nvim_get_current_win() then
    return selection_of(bufnr, from, to, mode)
  end
  local is_kept = kept
    and window
    and kept.bufnr == bufnr
    and kept.tick == api.nvim_buf_get_changedtick(bufnr)
    and vim.deep_equal(kept.cursor, api.nvim_win_get_cursor(window))
  return is_kept and selection_of(bufnr, kept.from, kept.to, kept.mode) or nil
end

return M
