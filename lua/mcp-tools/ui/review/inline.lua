--- A review in the buffers themselves: in the window that shows the file, or in the person's own.

local marks = require('mcp-tools.ui.review.marks')
local new_file = require('mcp-tools.ui.review.new_file')

local api = vim.api

local M = {}

---@param file mcp-tools.Proposal
---@return integer
local function buffer_of(file)
  return file.bufnr or new_file.buffer(file)
end

--- Shows a file: where it is shown already, in the current window if a text is in it, or in a new one.
---@param file mcp-tools.Proposal
---@return mcp-tools.ReviewWindow[] the current one is among them
function M.open(file)
  local bufnr = buffer_of(file)
  vim.cmd("normal! m'")
  local found = vim.iter(api.nvim_tabpage_list_wins(0)):find(function(window)
    return api.nvim_win_get_buf(window) == bufnr and api.nvim_win_get_config(window).relative == ''
  end)
  if found then
    api.nvim_set_current_win(found)
  else
    local is_text = vim.bo.buftype == '' and api.nvim_win_get_config(0).relative == ''
    local before = api.nvim_get_current_buf()
    vim.bo[bufnr].buflisted = vim.bo[bufnr].buftype == ''
    if is_text and pcall(vim.cmd, ('keepalt buffer %d'):format(bufnr)) then
      new_file.shown_in(api.nvim_get_current_win(), before)
    else
      vim.cmd(('sbuffer %d'):format(bufnr))
      new_file.shown_in(api.nvim_get_current_win(), nil)
    end
  end
  return { { window = api.nvim_get_current_win(), bufnr = bufnr, typed = not file.bufnr and file.editable } }
end

--- Leads the cursor to a hunk of the file that was opened last.
---@param file mcp-tools.Proposal
---@param i integer
function M.jump(file, i)
  local hunk = file.hunks[i]
  if not hunk or not file.bufnr then
    return
  end
  local count = api.nvim_buf_line_count(0)
  local row, above = marks.place_of(hunk, count)
  api.nvim_win_set_cursor(0, { math.min(hunk.count > 0 and hunk.start or row + 1, count), 0 })
  local height = api.nvim_win_get_height(0)
  vim.cmd('normal! ' .. (hunk.count + #hunk.new > height / 2 and 'zvzt' or 'zvzz'))
  if above then -- what stands above the first line is seen only so
    vim.fn.winrestview({ topline = 1, topfill = math.min(#hunk.new, height - 1) })
  end
end

--- Where the cursor is.
---@param files mcp-tools.Proposal[]
---@return integer? file of the current buffer
---@return integer? hunk at the cursor
---@return integer? before the last hunk that begins before it
function M.at_cursor(files)
  local bufnr, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1]
  local new = new_file.file_of(bufnr, files)
  if new then
    return new, 1, 1
  end
  for i, file in ipairs(files) do
    if file.bufnr == bufnr then
      file:sync()
      local before = 0
      for j, hunk in ipairs(file.hunks) do
        local last = hunk.start + hunk.count - 1
        if row >= math.min(hunk.start, last) and row <= math.max(last, 1) then
          return i, j, j
        end
        before = hunk.start <= row and j or before
      end
      return i, nil, before
    end
  end
end

--- Is one of some lines in no closed fold?
---@param window integer
---@param first integer
---@param last integer
---@return boolean
local function is_unfolded(window, first, last)
  return api.nvim_win_call(window, function()
    for line = first, last do
      if vim.fn.foldclosed(line) == -1 then
        return true
      end
    end
    return false
  end)
end

--- Is a hunk on the screen?
---@param file mcp-tools.Proposal
---@param i integer
---@return boolean
function M.is_seen(file, i)
  local hunk = file.hunks[i]
  if file.bufnr and not marks.is_drawn(file.bufnr, i) then
    return false
  end
  for _, window in ipairs(hunk and vim.fn.win_findbuf(buffer_of(file)) or {}) do
    local last = math.max(hunk.start + hunk.count - 1, 1)
    local is_here = api.nvim_win_get_tabpage(window) == api.nvim_get_current_tabpage()
    local info = vim.fn.getwininfo(window)[1]
    -- Without a screen 0.10 has no last line.
    local bottom = info.botline < info.topline and info.topline + info.height or info.botline
    local first = math.max(math.min(hunk.start, last), info.topline)
    if is_here and is_unfolded(window, first, math.min(last, bottom)) then
      return true
    end
  end
  return false
end

--- The text of a file as the person has made it, where that is another than what is proposed.
---@param file mcp-tools.Proposal
---@return string[]?
function M.typed(file)
  local lines = file.is_new and file.editable and new_file.text(file)
  return lines and not vim.deep_equal(lines, file:proposed()) and lines or nil
end

--- The proposal is another.
function M.update() end

--- The review is left.
function M.close() end

return M
