--- The way back out of the windows of an interview, to the text or terminal that the person came from.
---
--- Receives: that they leave another window, that they ask for ours.
--- Sends: the cursor back where it was, typing if they were.
--- Does not know about: interviews.

local log = require('mcp-tools.log')

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
  outside = api.nvim_get_current_win()
  before = { mode = api.nvim_get_mode().mode:sub(1, 1), cursor = api.nvim_win_get_cursor(0) }
end

--- Enters a window, also when an autocommand of the person's throws at that, which would keep the cursor where it is.
---@param window integer
function M.enter(window)
  local ok, thrown = pcall(api.nvim_set_current_win, window)
  if ok then
    return
  end
  log.warn('an autocommand failed when an interview was entered or left: %s', tostring(thrown))
  if api.nvim_get_current_win() ~= window then
    local ignored = vim.o.eventignore
    vim.o.eventignore = 'all'
    ok, thrown = pcall(api.nvim_set_current_win, window)
    vim.o.eventignore = ignored
    if not ok then
      error(thrown, 0)
    end
  end
end

--- Goes back.
function M.go()
  local was = before
  before = nil
  if outside and api.nvim_win_is_valid(outside) then
    M.enter(outside)
  else
    was = nil
    M.enter(vim.fn.win_getid(vim.fn.winnr('#')))
  end
  resume(was)
end

return M
