--- Review side by side in a tab page: the file on the left, the proposed text on the right.

local highlighting = require('mcp-tools.editor.buffer.highlighting')
local inline = require('mcp-tools.ui.review.inline')
local notify = require('mcp-tools.notify')
local text_diff = require('mcp-tools.editor.text.diff')
local timer = require('mcp-tools.util.timer')

local api = vim.api

local M = {}

--- Text typed on the right is read after this time without a change, ms.
local SETTLED_MS = 100
--- Maximum number of hunks side by side, because the time that Neovim takes grows with the square of their number.
local MAX_HUNKS = 1000

---@class mcp-tools.ReviewPair
---@field file mcp-tools.Proposal
---@field tab integer
---@field folds boolean the user's 'foldenable' for this file
---@field left integer window
---@field right integer window
---@field proposed integer buffer
---@field shown string[] last known text of `proposed`
---@field base string[] text of the file that it belongs to
---@field settling mcp-tools.Timer?

---@type mcp-tools.ReviewPair?
local pair

---@return boolean
local function is_open()
  return pair ~= nil and api.nvim_tabpage_is_valid(pair.tab) and api.nvim_buf_is_valid(pair.proposed)
end

---@return string[]
local function right_lines()
  return api.nvim_buf_get_lines(pair.proposed, 0, -1, false)
end

--- Returns the first line of a hunk in the proposed text.
---@param file mcp-tools.Proposal
---@param i integer
---@return integer
local function row_of(file, i)
  local shift = 0
  for j = 1, i - 1 do
    local hunk = file.hunks[j]
    shift = shift + (hunk.verdict ~= 'rejected' and not hunk.changed and #hunk.new - hunk.count or 0)
  end
  return file.hunks[i].start + shift
end

--- Ends diff mode in the windows of the tab page, which stays open if it is the only one. `:diffoff` alone does not
--- restore 'foldenable'.
---@param old mcp-tools.ReviewPair
local function leave_diff(old)
  for _, window in ipairs(api.nvim_tabpage_is_valid(old.tab) and api.nvim_tabpage_list_wins(old.tab) or {}) do
    if vim.wo[window].diff then
      api.nvim_win_call(window, function()
        vim.cmd('diffoff')
      end)
      vim.wo[window][0].foldenable = old.folds
    end
  end
end

--- Closes the tab page.
---@param is_withdrawn? boolean the user has not decided
function M.close(is_withdrawn)
  local old = pair
  pair = nil
  if not old then
    return
  elseif old.settling then
    old.settling:stop()
  end
  leave_diff(old)
  if api.nvim_tabpage_is_valid(old.tab) and #api.nvim_list_tabpages() > 1 then
    pcall(vim.cmd.tabclose, api.nvim_tabpage_get_number(old.tab))
  end
  if api.nvim_buf_is_valid(old.proposed) then
    inline.drop_buffer(old.proposed, is_withdrawn and old.file.rewritten and {} or old.shown)
  end
end

---@param file mcp-tools.Proposal
---@param accept fun(): boolean called by `:w` on the right
---@param typed fun() called after text was typed on the right
---@return integer bufnr
local function proposed_buffer(file, accept, typed)
  local bufnr = api.nvim_create_buf(false, true)
  api.nvim_buf_set_name(bufnr, ('mcp-tools://proposed/%d/%s'):format(bufnr, vim.fs.basename(file.path)))
  inline.set_first_text(bufnr, file:proposed())
  highlighting.set_filetype(bufnr, vim.bo[file.bufnr].filetype)
  inline.accept_by_write(bufnr, accept)
  vim.bo[bufnr].modifiable = file.editable
  api.nvim_buf_attach(bufnr, false, {
    on_lines = function()
      if not pair or pair.proposed ~= bufnr then
        return true
      end
      if pair.settling then
        pair.settling:stop()
      end
      pair.settling = timer.after(SETTLED_MS, typed)
    end,
  })
  return bufnr
end

--- Returns whether a file can be shown side by side. Others are shown inline.
---@param file mcp-tools.Proposal
---@return boolean
function M.fits(file)
  return file.bufnr ~= nil and #file.hunks <= MAX_HUNKS
end

--- Shows a file beside the proposed text.
---@param file mcp-tools.Proposal
---@param accept fun(): boolean
---@param typed fun()
---@return mcp-tools.ReviewWindow[]
function M.open(file, accept, typed)
  M.close()
  if not M.fits(file) then
    if file.bufnr then
      notify.info(('%d hunks are shown in the buffer: they are too many for side by side'):format(#file.hunks))
    end
    return inline.open(file, accept)
  end
  highlighting.guard_shown(file.bufnr)
  local proposed = proposed_buffer(file, accept, typed)
  local switchbuf = vim.o.switchbuf
  vim.o.switchbuf = '' -- do not reuse a window of the user
  local ok, err = pcall(vim.cmd, ('tab sbuffer %d'):format(file.bufnr))
  vim.o.switchbuf = switchbuf
  if not ok then
    error(err, 0)
  end
  local left = api.nvim_get_current_win()
  local folds = vim.wo[left].foldenable
  vim.cmd('diffthis')
  local right = api.nvim_open_win(proposed, true, { split = 'right', win = left })
  vim.cmd('diffthis')
  pair = {
    file = file,
    tab = api.nvim_get_current_tabpage(),
    folds = folds,
    left = left,
    right = right,
    proposed = proposed,
    shown = file:proposed(),
    base = file.base,
  }
  return { { window = left, bufnr = file.bufnr }, { window = right, bufnr = proposed, typed = file.editable } }
end

--- Moves the cursor to a hunk of the file that was opened last.
---@param file mcp-tools.Proposal
---@param i integer
function M.jump(file, i)
  if not is_open() or pair.file ~= file or api.nvim_get_current_win() ~= pair.right then
    return inline.jump(file, i)
  elseif file.hunks[i] then
    local row = math.min(row_of(file, i), api.nvim_buf_line_count(pair.proposed))
    api.nvim_win_set_cursor(pair.right, { math.max(1, row), 0 })
    vim.cmd('normal! zvzz')
  end
end

--- Returns where the cursor is, like `inline.at_cursor`.
---@param files mcp-tools.Proposal[]
---@param current? integer
---@return integer? file
---@return integer? hunk
---@return integer? before
function M.at_cursor(files, current)
  if not is_open() or api.nvim_get_current_buf() ~= pair.proposed then
    return inline.at_cursor(files, current)
  end
  local row, before = api.nvim_win_get_cursor(0)[1], 0
  local count = api.nvim_buf_line_count(0)
  for i, file in ipairs(files) do
    if file == pair.file then
      for j, hunk in ipairs(file.hunks) do
        local first = math.min(row_of(file, j), count)
        local last = first + (hunk.verdict == 'rejected' and hunk.count or #hunk.new) - 1
        if row >= math.min(first, last) and row <= math.max(last, first) then
          return i, j, j
        end
        before = first <= row and j or before
      end
      return i, nil, before
    end
  end
end

--- Returns the text on the right if the user has edited it since the last call.
---@param file mcp-tools.Proposal
---@return string[]? lines
---@return string[]? base text of the file that it was typed for
function M.typed(file)
  if not is_open() or pair.file ~= file or not file.editable then
    return inline.typed(file)
  end
  local lines = right_lines()
  if vim.deep_equal(lines, pair.shown) then
    return nil
  end
  pair.shown = lines
  vim.bo[pair.proposed].modified = false
  return lines, pair.base
end

--- Updates the right side after the proposal or the file has changed, unless the user has edited it.
---@param files mcp-tools.Proposal[]
function M.update(files)
  if not is_open() or not vim.list_contains(files, pair.file) then
    return
  end
  local lines, now = pair.file:proposed(), right_lines()
  if not vim.deep_equal(now, pair.shown) then
    return
  end
  pair.base = pair.file.base
  if vim.deep_equal(now, lines) then
    return
  end
  local first, last = text_diff.same_lines(now, lines)
  pair.shown = lines
  vim.bo[pair.proposed].modifiable = true
  local changed = vim.list_slice(lines, first + 1, #lines - last)
  api.nvim_buf_set_lines(pair.proposed, first, #now - last, false, changed)
  highlighting.guard(pair.proposed, first, #lines - last)
  vim.bo[pair.proposed].modifiable = pair.file.editable
  vim.bo[pair.proposed].modified = false
  if M.has(pair.file) then
    api.nvim_win_call(pair.right, function()
      vim.cmd('diffupdate')
    end)
  end
end

--- Returns the parts of a hunk that the user has to read, like `inline.parts`.
---@param file mcp-tools.Proposal
---@param i integer
---@return mcp-tools.HunkPart[]?
function M.parts(file, i)
  local hunk = file.hunks[i]
  if not hunk or not M.has(file) then
    return inline.parts(file, i)
  elseif api.nvim_get_current_tabpage() == pair.tab then
    return {
      { name = 'old', window = pair.left, first = hunk.start, count = hunk.count },
      { name = 'new', window = pair.right, first = row_of(file, i), count = #hunk.new },
    }
  end
end

--- Returns whether a file is shown side by side.
---@param file mcp-tools.Proposal
---@return boolean
function M.has(file)
  return is_open() and api.nvim_win_is_valid(pair.left) and api.nvim_win_is_valid(pair.right) and pair.file == file
end

return M
