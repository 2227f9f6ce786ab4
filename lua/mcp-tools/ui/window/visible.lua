--- Which lines of a window are completely visible: the user can accept a text only after each of its lines was.

local sanitize = require('mcp-tools.util.sanitize')

local api = vim.api

local M = {}

---@class mcp-tools.Visible
---@field window integer
---@field top integer first screen row of the window that no floating window covers
---@field bottom integer last one
---@field first integer first line that is completely visible
---@field last integer last one; before `first` if there is none
---@field from integer first line that may be partly visible
---@field to integer last one
---@field ends table<integer, integer> screen row in which a line ends, up to the first that is not completely visible

--- Returns the rows of a window that no floating window covers, as screen rows.
---@param window integer
---@return integer top
---@return integer bottom
local function free_rows(window)
  local info = vim.fn.getwininfo(window)[1]
  local top, bottom = info.winrow + info.winbar, info.winrow + info.winbar + info.height - 1
  local left, right = info.wincol, info.wincol + info.width - 1
  local zindex = api.nvim_win_get_config(window).zindex or 0
  for _, float in ipairs(api.nvim_tabpage_list_wins(0)) do
    local config = api.nvim_win_get_config(float)
    if
      float ~= window
      and config.relative ~= ''
      and not config.hide
      and config.zindex >= zindex
      and config.width > 2
    then -- a narrower one is a scroll bar
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

--- Returns whether a line has characters that do not show, such as those without width.
---@param text string
---@return boolean
local function has_hidden(text)
  text = text:gsub('\t', '')
  return sanitize.line(text) ~= text
end

--- Returns what a window of the current tab page shows.
---@param window integer
---@return mcp-tools.Visible
function M.of(window)
  local at = { window = window, top = 1, bottom = 0, first = 1, last = 0, from = 1, to = 0, ends = {} }
  if api.nvim_win_get_tabpage(window) ~= api.nvim_get_current_tabpage() then
    return at
  end
  at.top, at.bottom = free_rows(window)
  local info, view = vim.fn.getwininfo(window)[1], api.nvim_win_call(window, vim.fn.winsaveview)
  local bufnr, width = api.nvim_win_get_buf(window), math.max(1, info.width - info.textoff)
  local count = api.nvim_buf_line_count(bufnr)
  local row, below = info.winrow + info.winbar, info.winrow + info.winbar + info.height
  at.from, at.to = view.topline - 1, math.min(count, view.topline + info.height)
  api.nvim_win_call(window, function()
    for line = view.topline, at.to do
      local text = api.nvim_buf_get_lines(bufnr, line - 1, line, false)[1]
      if row >= below or #text > 8 * vim.o.columns * vim.o.lines then -- it does not fit, and to measure it takes time
        break
      end
      local height = api.nvim_win_text_height(window, { start_row = line - 1, end_row = line - 1 })
      local is_top = line == view.topline
      local first = row + (is_top and view.topfill or height.fill)
      local last = first + height.all - height.fill - 1 - (is_top and math.floor(view.skipcol / width) or 0)
      local is_whole = first >= at.top and last <= at.bottom and not (is_top and view.skipcol > 0)
      at.ends[line], row = last, last + 1
      if is_whole and vim.fn.foldclosed(line) == -1 and not has_hidden(text) then
        at.first = at.last < at.first and line or at.first
        at.last = line
      elseif at.last >= at.first then
        break
      end
    end
  end)
  return at
end

--- Returns how many lines at the beginning of a text were visible, including what a window shows now.
---@param at mcp-tools.Visible
---@param first integer first line of the text
---@param count integer its number of lines
---@param seen integer how many were visible before
---@return integer
function M.seen(at, first, count, seen)
  local is_next = at.first <= first + seen and first + seen <= at.last
  return is_next and math.min(count, at.last - first + 1) or seen
end

--- Returns the last row of a text that was read, including what a window shows now. A visible row is regarded as read
--- if the rows before it were read or the user scrolled past them, but not if another window covers them.
---@param at mcp-tools.Visible
---@param read integer last row that was read before
---@return integer
function M.read(at, read)
  local is_next = at.first <= read + 1 or at.first == at.from + 1
  return is_next and math.max(read, at.last) or read
end

--- Returns the first line of a page, so that the last line of the text is at its end if it would be on it.
---@param window integer
---@param line integer to show
---@param height integer rows of the page
---@return integer
local function page_top(window, line, height)
  local top = line
  while top > 1 and api.nvim_win_text_height(window, { start_row = top - 2 }).all <= height do
    top = top - 1
  end
  return top
end

--- Scrolls a window so that a line is the first one that nothing covers, unless the rest of the text is less than a
--- page, and moves the cursor to it.
---@param window integer
---@param line integer
function M.show(window, line)
  api.nvim_win_call(window, function()
    local info = vim.fn.getwininfo(window)[1]
    local first, last = free_rows(window)
    local covered = first - info.winrow - info.winbar
    local top = page_top(window, line, last - first + 1)
    vim.fn.winrestview({ topline = top, lnum = line, col = 0, skipcol = 0, topfill = 0 })
    if covered > 0 then
      vim.cmd(('normal! %d\25'):format(covered)) -- CTRL-Y
    end
  end)
end

--- Shows the virtual lines above the first line.
---@param window integer
function M.show_above(window)
  api.nvim_win_call(window, function()
    local rows = api.nvim_win_text_height(0, { start_row = 0, end_row = 0 }).fill
    vim.fn.winrestview({ topline = 1, topfill = math.min(rows, api.nvim_win_get_height(0) - 1) })
  end)
end

return M
