--- Shows a file to the user, never in a window in which they are typing.
---
--- The user's cursor stays in its window. Terminals, floats and windows with 'winfixbuf' are not used.

local errors = require('mcp-tools.errors')

local api, fn = vim.api, vim.fn

local M = {}

M.WHERE = { 'here', 'split', 'vsplit', 'tab' }

--- Returns whether a window may show another file.
---@param window integer
---@return boolean
local function is_free(window)
  local bufnr = api.nvim_win_get_buf(window)
  return api.nvim_win_get_config(window).relative == ''
    and fn.win_gettype(window) == ''
    and vim.bo[bufnr].buftype == ''
    and not vim.wo[window].winfixbuf
    and not vim.wo[window].previewwindow
end

--- Returns whether switching the buffer would fail because of unsaved changes and 'nohidden'.
---@param window integer
---@return boolean
local function holds_changes(window)
  local bufnr = api.nvim_win_get_buf(window)
  return vim.bo[bufnr].modified and not vim.o.hidden and vim.bo[bufnr].bufhidden == '' and #fn.win_findbuf(bufnr) == 1
end

--- Returns whether the user is in a mode or window that must not change.
---@return boolean
local function is_busy()
  return api.nvim_get_mode().mode ~= 'n' or not is_free(api.nvim_get_current_win())
end

--- Returns the window of this tab page to use: one that shows the buffer, the current, the previous, any other one.
---@param bufnr integer
---@return integer?
local function window_for(bufnr)
  local current, previous = api.nvim_get_current_win(), fn.win_getid(fn.winnr('#'))
  local list = { current, previous > 0 and previous or nil }
  vim.list_extend(list, api.nvim_tabpage_list_wins(0))
  for _, window in ipairs(list) do
    if api.nvim_win_get_buf(window) == bufnr and is_free(window) and not (window == current and is_busy()) then
      return window
    end
  end
  for _, window in ipairs(list) do
    if is_free(window) and not holds_changes(window) and not (window == current and is_busy()) then
      return window
    end
  end
end

--- Maximum number of tab pages, and of splits per tab page, opened here.
local MAX_OPENED = 5

--- Returns the last window opened here if the maximum is reached.
---@param kind 'tab'|'split'
---@param windows integer[]
---@return integer?
local function reusable(kind, windows)
  local opened = vim.tbl_filter(function(window)
    return vim.w[window].mcp_tools_opened == kind
  end, windows)
  local last = opened[#opened]
  return #opened >= MAX_OPENED and is_free(last) and not holds_changes(last) and last or nil
end

---@param bufnr integer
---@return integer window
local function open_tab(bufnr)
  local reused = reusable('tab', api.nvim_list_wins())
  if reused then
    api.nvim_set_current_win(reused)
  else
    vim.cmd('tab split')
    vim.w.mcp_tools_opened = 'tab'
  end
  api.nvim_win_set_buf(0, bufnr)
  return api.nvim_get_current_win()
end

--- Opens a new window. It is only entered if it is in a new tab page.
---@param bufnr integer
---@param where string
---@return integer window
local function open(bufnr, where)
  if where == 'tab' and not is_busy() then -- a new tab page is always entered
    return open_tab(bufnr)
  end
  local reused = reusable('split', api.nvim_tabpage_list_wins(0))
  if reused and not (reused == api.nvim_get_current_win() and is_busy()) then
    api.nvim_win_set_buf(reused, bufnr)
    return reused
  end
  local beside = api.nvim_get_current_win()
  if api.nvim_win_get_config(beside).relative ~= '' then
    beside = -1
  end
  local split = where == 'vsplit' and 'right' or 'above'
  local ok, window = pcall(api.nvim_open_win, bufnr, false, { split = split, win = beside })
  window = ok and window or api.nvim_open_win(bufnr, false, { split = 'above', win = -1, height = 1 })
  vim.w[window].mcp_tools_opened = 'split'
  return window
end

---@param window integer
---@param line integer
---@param byte integer 0-based
local function go_to(window, line, byte)
  local height = api.nvim_win_get_height(window)
  api.nvim_win_set_cursor(window, { line, byte })
  api.nvim_win_call(window, function()
    pcall(vim.cmd, 'silent! .foldopen!')
    local top, bottom = fn.line('w0'), fn.line('w$')
    if line < top + 2 or line > bottom - 2 then
      fn.winrestview({ topline = math.max(1, line - math.floor(height / 3)) })
    end
  end)
end

--- Returns why nothing can be shown now.
---@return mcp-tools.Error?
local function refusal()
  if fn.getcmdwintype() ~= '' then
    return errors.new('busy', 'the command-line window is open; try again later')
  end
end

---@param bufnr integer
---@param place { line: integer, byte: integer }
---@param where string
---@return integer window
local function show(bufnr, place, where)
  local window = where == 'here' and window_for(bufnr) or nil
  if window and api.nvim_win_get_buf(window) ~= bufnr then
    if not is_busy() then
      api.nvim_win_call(window, function()
        vim.cmd("normal! m'") -- for CTRL-O
      end)
    end
    api.nvim_win_set_buf(window, bufnr)
  end
  window = window or open(bufnr, where == 'here' and 'split' or where)
  vim.bo[bufnr].buflisted = true
  go_to(window, place.line, place.byte)
  return window
end

--- Shows a buffer.
---@param bufnr integer loaded
---@param place { line: integer, byte: integer } 1-based line, 0-based byte
---@param where 'here'|'split'|'vsplit'|'tab'
---@return integer? window
---@return mcp-tools.Error? err
function M.show(bufnr, place, where)
  local err = refusal()
  if err then
    return nil, err
  end
  -- The swap file is created now; do not ask about one of another Neovim.
  local shortmess = vim.o.shortmess
  vim.cmd('noautocmd set shortmess+=AF')
  local ok, window = pcall(show, bufnr, place, where)
  vim.cmd('noautocmd let &shortmess = ' .. fn.string(shortmess))
  if not ok then
    local why = tostring(window):match('E%d+:.*') or tostring(window)
    return nil, errors.new('busy', ('the file cannot be shown now (%s); try again later'):format(why))
  end
  return window
end

return M
