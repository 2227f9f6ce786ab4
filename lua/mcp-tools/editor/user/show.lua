--- Shows a file to the user, never in a window in which they are typing, and highlights lines of it.
---
--- The user's cursor stays in its window. Terminals, floats and windows with 'winfixbuf' are not used.

local errors = require('mcp-tools.errors')
local highlighting = require('mcp-tools.editor.buffer.highlighting')

local api, fn = vim.api, vim.fn

local M = {}

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

--- Opens a window beside the current one, without entering it.
---@param bufnr integer
---@return integer window
local function open(bufnr)
  local beside = api.nvim_get_current_win()
  if api.nvim_win_get_config(beside).relative ~= '' then
    beside = -1
  end
  local ok, window = pcall(api.nvim_open_win, bufnr, false, { split = 'above', win = beside })
  return ok and window or api.nvim_open_win(bufnr, false, { split = 'above', win = -1, height = 1 })
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

---@param bufnr integer
---@param place { line: integer, byte: integer }
---@return integer window
local function show(bufnr, place)
  local window = window_for(bufnr)
  if window and api.nvim_win_get_buf(window) ~= bufnr then
    if not is_busy() then
      api.nvim_win_call(window, function()
        vim.cmd("normal! m'") -- for CTRL-O
      end)
    end
    api.nvim_win_set_buf(window, bufnr)
  end
  window = window or open(bufnr)
  vim.bo[bufnr].buflisted = true
  go_to(window, place.line, place.byte)
  return window
end

--- Shows a buffer.
---@param bufnr integer loaded
---@param place { line: integer, byte: integer } 1-based line, 0-based byte
---@return integer? window
---@return mcp-tools.Error? err
function M.show(bufnr, place)
  if fn.getcmdwintype() ~= '' then
    return nil, errors.new('busy', 'the command-line window is open; try again later')
  end
  highlighting.guard_shown(bufnr)
  -- The swap file is created now; do not ask about one of another Neovim.
  local shortmess = vim.o.shortmess
  vim.cmd('noautocmd set shortmess+=AF')
  local ok, window = pcall(show, bufnr, place)
  vim.cmd('noautocmd let &shortmess = ' .. fn.string(shortmess))
  if not ok then
    local why = tostring(window):match('E%d+:.*') or tostring(window)
    return nil, errors.new('busy', ('the file cannot be shown now (%s); try again later'):format(why))
  end
  return window
end

local namespace = api.nvim_create_namespace('mcp-tools.highlight')
local shown ---@type integer? buffer

local function clear()
  if shown and api.nvim_buf_is_valid(shown) then
    api.nvim_buf_clear_namespace(shown, namespace, 0, -1)
  end
  shown = nil
end

--- Highlights lines of a buffer, instead of those before.
---@param bufnr integer loaded
---@param ranges { [1]: integer, [2]: integer }[] first and last lines
function M.highlight(bufnr, ranges)
  clear()
  if #ranges == 0 then
    return
  end
  shown = bufnr
  for _, range in ipairs(ranges) do
    local opts = { end_row = range[2], hl_group = 'Visual', hl_eol = true, strict = false }
    api.nvim_buf_set_extmark(bufnr, namespace, range[1] - 1, 0, opts)
  end
  api.nvim_create_autocmd({ 'TextChanged', 'InsertEnter' }, {
    group = api.nvim_create_augroup('mcp-tools.highlight', {}),
    buffer = bufnr,
    once = true,
    callback = clear,
  })
end

return M
