--- The way back out of the windows of an interview, to the text or terminal that the person came from.
---
--- Receives: that they leave another window, that they ask for ours.
--- Sends: the cursor back where it was, typing if they were.
--- Does not know about: interviews.

local api = vim.api

local M = {}

---@type integer? where the person was before they went into our windows
local outside
---@type { mode: string, cursor: integer[] }? what they did there when they asked for ours
local before

--- Goes on with what the person did when they came: typing, in a text or in a terminal. Keys that they have typed since
--- are to go there, so that there is no moment in which they would be commands.
---@param was { mode: string, cursor: integer[] }?
local function resume(was)
  local typing = api.nvim_get_mode().mode:sub(1, 1) == 'i' -- in the field, still
  local is_terminal = vim.bo.buftype == 'terminal'
  if was and was.mode == 't' and is_terminal then
    if typing then
      api.nvim_feedkeys(vim.keycode('<C-\\><C-N>i'), 'ni', false)
    else
      vim.cmd.startinsert()
    end
  elseif was and was.mode == 'i' and not is_terminal then
    pcall(api.nvim_win_set_cursor, 0, was.cursor)
    if not typing then
      vim.cmd(was.cursor[2] >= #api.nvim_get_current_line() and 'startinsert!' or 'startinsert')
    end
  elseif typing then
    vim.cmd.stopinsert()
  end
end

--- A window that is not ours is left.
function M.left()
  outside = api.nvim_get_current_win()
end

--- The person asks for ours.
function M.remember()
  before = { mode = api.nvim_get_mode().mode:sub(1, 1), cursor = api.nvim_win_get_cursor(0) }
end

--- Goes back.
function M.go()
  local was = before
  before = nil
  if outside and api.nvim_win_is_valid(outside) then
    api.nvim_set_current_win(outside)
  else
    was = nil
    vim.cmd.wincmd('p')
  end
  resume(was)
end

return M
