--- How much of a hunk is on the screen: a hunk is accepted only after its end was visible.

local api = vim.api

local M = {}

---@class mcp-tools.HunkRows
---@field window integer
---@field first integer first real line, 1-based
---@field last integer last real line
---@field extra integer virtual rows below the last line
---@field above boolean the virtual rows are above line 1
---@field rest boolean lines are left that are not drawn yet

---@alias mcp-tools.HunkView
---| 'read'    # its end is visible
---| 'below'   # its end is below what is visible
---| 'off'     # nothing of it is visible
---| 'covered' # floating windows leave no rows of the window

--- Returns the rows of a window that no floating window covers, as screen rows.
---@param window integer
---@return integer top
---@return integer bottom
local function free_rows(window)
  local info = vim.fn.getwininfo(window)[1]
  local top, bottom = info.winrow + info.winbar, info.winrow + info.winbar + info.height - 1
  local left, right = info.wincol, info.wincol + info.width - 1
  for _, float in ipairs(api.nvim_tabpage_list_wins(0)) do
    local config = api.nvim_win_get_config(float)
    if config.relative ~= '' and not config.hide then
      local at, frame = api.nvim_win_get_position(float), config.border and config.border ~= 'none' and 2 or 0
      local first, column = at[1] + 1, at[2] + 1
      local last = first + config.height + frame - 1
      local is_beside = column > right or column + config.width + frame - 1 < left
      if not is_beside and first <= bottom and last >= top then
        if first - top >= bottom - last then -- more is left above it
          bottom = first - 1
        else
          top = last + 1
        end
      end
    end
  end
  return top, bottom
end

---@param at mcp-tools.HunkRows
---@return mcp-tools.HunkView
---@return integer rows that are free
---@return integer? drawn virtual rows that are visible, once the last real line is
function M.view(at)
  local info = vim.fn.getwininfo(at.window)[1]
  local top, bottom = free_rows(at.window)
  local rows = bottom - top + 1
  if rows < 1 then
    return 'covered', 0
  end
  local view = api.nvim_win_call(at.window, vim.fn.winsaveview)
  if at.above or view.topline == at.last + 1 then
    local is_next = view.topline == (at.above and 1 or at.last + 1)
    local ends = info.winrow + info.winbar + view.topfill - 1
    local is_free = ends >= top and ends <= bottom
    local how = (not is_next or view.topfill == 0) and 'off' or is_free and (at.rest and 'below' or 'read') or 'covered'
    return how, rows, view.topfill
  end
  -- Without a UI 0.10 has no `botline`.
  local lowest = info.botline < info.topline and info.topline + info.height or info.botline
  if view.topline > at.last or lowest < at.first then
    return 'off', rows
  end
  local function height(last)
    return api.nvim_win_text_height(at.window, { start_row = view.topline - 1, end_row = last - 1 })
  end
  -- The rows above the first line count as far as they are scrolled into the window.
  local text_rows = height(at.last).all - height(view.topline).fill + view.topfill
  local scrolled = math.floor(view.skipcol / math.max(1, info.width - info.textoff)) -- rows of the first line
  local last = info.winrow + info.winbar + text_rows - 1 - scrolled
  local drawn = last <= bottom and math.min(at.extra, bottom - last) or nil
  return last + at.extra <= bottom and not at.rest and 'read' or 'below', rows, drawn
end

--- Scrolls a window down by what is visible of it, less one row; with 'smoothscroll' also within a line.
---@param window integer
---@param rows integer
function M.scroll(window, rows)
  api.nvim_win_call(window, function()
    vim.cmd(('normal! %d\5'):format(math.max(1, rows - 1))) -- CTRL-E
  end)
end

return M
