--- Return of the focus from floating windows of ours, to the text or terminal that the person came from.

local log = require('mcp-tools.log')

local api = vim.api

local M = {}

---@class mcp-tools.FocusReturn
---@field outside integer? where the person was before they went into our windows
---@field before { mode: string, cursor: integer[] }? what they did there when they asked for ours
local FocusReturn = {}
FocusReturn.__index = FocusReturn

--- Makes one, for windows that stand together.
---@return mcp-tools.FocusReturn
function M.new()
  return setmetatable({}, FocusReturn)
end

--- Enters a window, also when an autocommand of the person's throws at that, which would keep the cursor where it is.
---@param window integer
function M.enter(window)
  local ok, thrown = pcall(api.nvim_set_current_win, window)
  if ok then
    return
  end
  log.warn('an autocommand failed when a window of ours was entered or left: %s', tostring(thrown))
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

--- Goes on with what the person did when they came: typing, in a text or in a terminal. Keys that they have typed since
--- are to go there, so that there is no moment in which they would be commands.
---@param was { mode: string, cursor: integer[] }?
local function resume(was)
  local typing = api.nvim_get_mode().mode:sub(1, 1) == 'i' -- in a field of ours, still
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
function FocusReturn:left()
  self.outside = api.nvim_get_current_win()
end

--- One that is not ours is entered, without us: what the person did before they came is over.
function FocusReturn:returned()
  self.before = nil
end

--- The person asks for ours.
function FocusReturn:remember()
  self.outside = api.nvim_get_current_win()
  self.before = { mode = api.nvim_get_mode().mode:sub(1, 1), cursor = api.nvim_win_get_cursor(0) }
end

--- Where to go when the window that they came from is gone: where they were before, or any text of this tab page.
---@return integer window
local function elsewhere()
  local last = vim.fn.win_getid(vim.fn.winnr('#'))
  local texts = vim.tbl_filter(function(window)
    return api.nvim_win_get_config(window).relative == ''
  end, api.nvim_tabpage_list_wins(0))
  return vim.list_contains(texts, last) and last or texts[1]
end

--- Goes back.
function FocusReturn:go()
  local was = self.before
  self.before = nil
  if self.outside and api.nvim_win_is_valid(self.outside) then
    M.enter(self.outside)
  else
    was = nil
    M.enter(elsewhere())
  end
  resume(was)
end

return M
