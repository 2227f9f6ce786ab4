--- Moves the user's focus between windows.

local log = require('mcp-tools.log')

local api = vim.api

local M = {}

--- Enters a window, even if an autocommand of the user throws an error, which would cancel the move.
---@param window integer
function M.enter(window)
  local ok, thrown = pcall(api.nvim_set_current_win, window)
  if ok then
    return
  end
  log.warn('an autocommand failed while the focus moved: %s', tostring(thrown))
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

--- Returns the window that the user was in before the current one, or another normal window of this tab page: best one
--- that is no terminal, where the user's keys could be sent to an agent.
---@return integer? window nil if the current one is the only normal window
function M.previous()
  local current, last = api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr('#'))
  local others = vim.tbl_filter(function(window)
    return window ~= current and api.nvim_win_get_config(window).relative == ''
  end, api.nvim_tabpage_list_wins(0))
  return vim.list_contains(others, last) and last
    or vim.iter(others):find(function(window)
      return vim.bo[api.nvim_win_get_buf(window)].buftype ~= 'terminal'
    end)
    or others[1]
end

--- Closes a window. If it is the current one, the focus returns to the previous window, not to a neighbor.
---@param window integer
---@param force? boolean even if its text is unsaved
---@return boolean closed
---@return string? err
function M.close(window, force)
  local is_current = window == api.nvim_get_current_win()
  local previous = is_current and M.previous() or nil
  if previous then
    pcall(M.enter, previous)
  end
  local ok, err = pcall(api.nvim_win_close, window, force or false)
  if not ok and previous then
    pcall(M.enter, window)
  end
  return ok, err
end

return M
