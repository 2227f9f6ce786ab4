--- A file shown to the person: in a window that may show it, and never in one that they type in.
---
--- The cursor of the person stays in the window it is in. A terminal, a float, a window that holds its buffer, and text
--- that is being typed are left as they are.

local errors = require('mcp-tools.errors')

local api, fn = vim.api, vim.fn

local M = {}

M.WHERE = { 'here', 'split', 'vsplit', 'tab' }

--- Can a window show another file?
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

--- Would its text be lost to 'nohidden'?
---@param window integer
---@return boolean
local function holds_changes(window)
  local bufnr = api.nvim_win_get_buf(window)
  return vim.bo[bufnr].modified and not vim.o.hidden and vim.bo[bufnr].bufhidden == '' and #fn.win_findbuf(bufnr) == 1
end

--- Does the person do something that is not to be taken from under their hands?
---@return boolean
local function is_busy()
  return api.nvim_get_mode().mode ~= 'n' or not is_free(api.nvim_get_current_win())
end

--- The window of this tab page to show it in: one that shows it, the person's own, the one before, any other.
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

--- Maximum number of tab pages, and of splits in a tab page, that are opened here.
local MAX_OPENED = 5

--- The window to use again when enough were opened: the last one of its kind.
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
  local known = reusable('tab', api.nvim_list_wins())
  if known then
    api.nvim_set_current_win(known)
  else
    vim.cmd('tab split')
    vim.w.mcp_tools_opened = 'tab'
  end
  api.nvim_win_set_buf(0, bufnr)
  return api.nvim_get_current_win()
end

--- A new window, which is not entered unless it is of a tab page of its own.
---@param bufnr integer
---@param where string
---@return integer window
local function open(bufnr, where)
  if where == 'tab' and not is_busy() then -- it can only be entered
    return open_tab(bufnr)
  end
  local known = reusable('split', api.nvim_tabpage_list_wins(0))
  if known and not (known == api.nvim_get_current_win() and is_busy()) then
    api.nvim_win_set_buf(known, bufnr)
    return known
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
---@param byte integer from 0
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

--- Why nothing can be shown now.
---@return mcp-tools.Error?
local function refusal()
  if fn.getcmdwintype() ~= '' then
    return errors.new('busy', 'the command-line window is open, in which no file can be shown; try again later')
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
        vim.cmd("normal! m'") -- the way back
      end)
    end
    api.nvim_win_set_buf(window, bufnr)
  end
  window = window or open(bufnr, where == 'here' and 'split' or where)
  vim.bo[bufnr].buflisted = true
  go_to(window, place.line, place.byte)
  return window
end

--- Shows it.
---@param bufnr integer loaded
---@param place { line: integer, byte: integer } from 1, and from 0
---@param where 'here'|'split'|'vsplit'|'tab'
---@return integer? window
---@return mcp-tools.Error? err
function M.show(bufnr, place, where)
  local err = refusal()
  if err then
    return nil, err
  end
  -- The swap file of a buffer is made when it is first seen; that another editor has one is no question here.
  local shortmess = vim.o.shortmess
  vim.cmd('noautocmd set shortmess+=AF')
  local ok, window = pcall(show, bufnr, place, where)
  vim.cmd('noautocmd let &shortmess = ' .. fn.string(shortmess))
  if not ok then
    local why = tostring(window):match('E%d+:.*') or tostring(window)
    return nil, errors.new('busy', ('it cannot be shown now (%s); try again later'):format(why))
  end
  return window
end

return M
