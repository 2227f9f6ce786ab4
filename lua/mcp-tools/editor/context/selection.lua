--- What the person has selected, or had selected when they left visual mode and have not moved since.
---
--- Who selects lines and then goes to the terminal of the agent means these lines, though visual mode is over.

local buffers = require('mcp-tools.editor.buffer')
local location = require('mcp-tools.editor.context.location')
local person_selection = require('mcp-tools.editor.user.selection')
local utf8 = require('mcp-tools.util.utf8')

local api, fn = vim.api, vim.fn

local M = {}

--- Bytes of the text that is told: it is copied at every pause of the person. The range is told whole.
local MAX_BYTES = 64 * 1024

---@class mcp-tools.context.Selection
---@field start mcp-tools.context.Position
---@field finish mcp-tools.context.Position behind the last character
---@field text string

---@class mcp-tools.context.Kept the selection that was left last
---@field bufnr integer
---@field tick integer
---@field cursor integer[]
---@field mode string
---@field from integer[] as getpos() has it
---@field to integer[]

local kept ---@type mcp-tools.context.Kept?

--- The text between two places.
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
  return utf8.cut(person_selection.text(bufnr, from, to, mode), MAX_BYTES)
end

--- Row and byte behind the character at a place.
---@param bufnr integer
---@param at integer[]
---@return integer row
---@return integer byte
local function behind(bufnr, at)
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
    start, finish = location.position(bufnr, from[2] - 1, from[3] - 1), location.position(bufnr, behind(bufnr, to))
  end
  return { start = start, finish = finish, text = text_of(bufnr, from, to, mode) }
end

--- Visual mode has ended: what was selected counts until the cursor or the text is another.
---@param mode string that has ended
function M.left(mode)
  if #mode > 1 then -- such as "vs", Select mode for one command
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

--- The selection in a window.
---@param window integer?
---@param bufnr integer loaded
---@return mcp-tools.context.Selection?
function M.get(window, bufnr)
  local from, to, mode = person_selection.visual()
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
