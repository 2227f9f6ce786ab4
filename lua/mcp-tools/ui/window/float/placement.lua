--- Placement of a floating window that nobody called for, so that the person sees what they are doing.

local api = vim.api

local M = {}

--- Of the screen; the person goes on working in the rest.
local SHARE = 0.6
--- Rows of the frame of a window.
local FRAME = 2
M.FRAME = FRAME
--- Rows that hold what is asked; lower it is not made.
local LEAST = 8
--- The line that the cursor is in counts for more than any other window.
local CURSOR_COST = 1000

---@param window integer?
---@return integer? top row, from 0
---@return integer? below first row after it
local function rows_of(window)
  if not window or not api.nvim_win_is_valid(window) or api.nvim_win_get_config(window).relative ~= '' then
    return nil
  elseif api.nvim_win_get_tabpage(window) ~= api.nvim_get_current_tabpage() then
    return nil
  end
  local info = vim.fn.getwininfo(window)[1]
  return info.winrow - 1, info.winrow - 1 + info.winbar + info.height
end

--- How high it may be: as it wants, or what is left beside the window that was opened.
---@param wanted integer
---@param screen integer
---@param top integer?
---@param below integer?
---@return integer[] the highest first
local function heights(wanted, screen, top, below)
  local list = { wanted }
  for _, gap in ipairs(top and { top - 1, screen - 1 - below } or {}) do
    local height = gap - FRAME
    if height >= LEAST and height < wanted then
      table.insert(list, height)
    end
  end
  table.sort(list, function(a, b)
    return a > b
  end)
  return list
end

--- Finds a place. One as good as where it stands is no reason to move, and only what would be hidden makes it lower.
---@param rows integer of its text
---@param opened integer? window
---@param now integer? row where it stands
---@return { row: integer, height: integer }
function M.find(rows, opened, now)
  local screen = vim.o.lines - vim.o.cmdheight
  local wanted = math.max(1, math.min(rows, math.floor(screen * SHARE)))
  local cursor = api.nvim_win_get_position(0)[1] + vim.fn.winline() - 1
  local low = cursor + 1 > screen / 2
  local top, below = rows_of(opened)

  local best = { row = 0, height = wanted, cost = math.huge }
  for _, height in ipairs(heights(wanted, screen, top, below)) do
    local box = height + FRAME
    local lowest = math.max(0, screen - 1 - box)
    -- The half that the cursor is not in comes first.
    local candidates = { now or -1, low and 0 or lowest, low and lowest or 0 }
    if top then
      vim.list_extend(candidates, { top - 1 - box, below + 1 })
    end
    for _, row in ipairs(candidates) do
      local covers_cursor = cursor >= row and cursor < row + box
      local covered = top and math.max(0, math.min(row + box, below) - math.max(row, top)) or 0
      local cost = (covers_cursor and CURSOR_COST or 0) + covered
      if row >= 0 and row <= lowest and cost < best.cost then
        best = { row = row, height = height, cost = cost }
      end
    end
  end
  return { row = best.row, height = best.height }
end

return M
