--- Review in the buffers themselves: in the window that shows the file, or in the user's current one. A new file has a
--- buffer of its own, so that `:w` writes nothing.

local highlights = require('mcp-tools.ui.window.highlights')
local marks = require('mcp-tools.ui.review.marks')

local api = vim.api

local M = {}

--- The buffer-local value of 'undolevels' that means the global one.
local USE_GLOBAL = -123456

--- Sets the first text of a buffer, so that `u` does not remove it.
---@param bufnr integer
---@param lines string[]
function M.set_first_text(bufnr, lines)
  vim.bo[bufnr].undolevels = -1
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].undolevels = USE_GLOBAL
end

---@type table<mcp-tools.Proposal, integer>
local buffers = setmetatable({}, { __mode = 'k' })
---@type table<integer, integer> window → previous buffer
local came_from = {}

--- Returns the buffer of a new file.
---@param file mcp-tools.Proposal
---@return integer bufnr
local function new_file_buffer(file)
  local known = buffers[file]
  if known and api.nvim_buf_is_valid(known) then
    return known
  end
  local bufnr = api.nvim_create_buf(false, true)
  buffers[file] = bufnr
  api.nvim_buf_set_name(bufnr, ('mcp-tools://new/%d/%s'):format(bufnr, vim.fs.basename(file.path)))
  M.set_first_text(bufnr, file:proposed())
  vim.bo[bufnr].filetype = vim.filetype.match({ filename = file.path, buf = bufnr }) or ''
  vim.bo[bufnr].modifiable = file.editable
  api.nvim_buf_set_extmark(bufnr, marks.SPACE, 0, 0, {
    end_row = api.nvim_buf_line_count(bufnr) - 1,
    line_hl_group = highlights.group('Added'),
    right_gravity = false,
    end_right_gravity = true,
    priority = 50,
  })
  return bufnr
end

--- Returns the text of a new file as the user has edited it, if it was shown.
---@param file mcp-tools.Proposal
---@return string[]?
local function new_file_text(file)
  local bufnr = buffers[file]
  return bufnr and api.nvim_buf_is_valid(bufnr) and api.nvim_buf_get_lines(bufnr, 0, -1, false) or nil
end

---@param bufnr integer
---@param files mcp-tools.Proposal[]
---@return integer? file index of the new file that the buffer belongs to
local function new_file_of(bufnr, files)
  for i, file in ipairs(files) do
    if buffers[file] == bufnr then
      return i
    end
  end
end

--- If the current window shows a new file, shows its previous buffer again.
function M.leave_new_file()
  local window = api.nvim_get_current_win()
  if not vim.tbl_contains(vim.tbl_values(buffers), api.nvim_get_current_buf()) then
    return
  end
  local before = came_from[window]
  if before and api.nvim_buf_is_valid(before) then
    pcall(api.nvim_win_set_buf, window, before)
  elseif #api.nvim_list_wins() > 1 then
    pcall(api.nvim_win_close, window, false)
  end
end

--- Deletes the buffer of a new file.
---@param file mcp-tools.Proposal
function M.drop_new_file(file)
  local bufnr = buffers[file]
  buffers[file] = nil
  if bufnr and api.nvim_buf_is_valid(bufnr) then
    pcall(api.nvim_buf_delete, bufnr, { force = true })
  end
end

---@param file mcp-tools.Proposal
---@return integer
local function buffer_of(file)
  return file.bufnr or new_file_buffer(file)
end

--- Shows a file: in a window that already shows it, in the current window if it shows a file, or in a new one.
---@param file mcp-tools.Proposal
---@return mcp-tools.ReviewWindow[] windows including the current one
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
      came_from[api.nvim_get_current_win()] = before
    else
      vim.cmd(('sbuffer %d'):format(bufnr))
      came_from[api.nvim_get_current_win()] = nil
    end
  end
  return { { window = api.nvim_get_current_win(), bufnr = bufnr, typed = not file.bufnr and file.editable } }
end

--- Moves the cursor to a hunk of the file that was opened last.
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
  if above then -- virtual lines above the first line need `topfill`
    vim.fn.winrestview({ topline = 1, topfill = math.min(#hunk.new, height - 1) })
  end
end

--- Returns where the cursor is.
---@param files mcp-tools.Proposal[]
---@return integer? file index of the file in the current buffer
---@return integer? hunk at the cursor
---@return integer? before last hunk that begins before the cursor
function M.at_cursor(files)
  local bufnr, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1]
  local new = new_file_of(bufnr, files)
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

--- Returns whether any line of a range is outside a closed fold.
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

--- Returns whether a hunk is on the screen.
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
    -- Without a UI 0.10 has no `botline`.
    local bottom = info.botline < info.topline and info.topline + info.height or info.botline
    local first = math.max(math.min(hunk.start, last), info.topline)
    if is_here and is_unfolded(window, first, math.min(last, bottom)) then
      return true
    end
  end
  return false
end

--- Returns the text of a new file if the user has edited it.
---@param file mcp-tools.Proposal
---@return string[]?
function M.typed(file)
  local lines = file.is_new and file.editable and new_file_text(file)
  return lines and not vim.deep_equal(lines, file:proposed()) and lines or nil
end

--- Nothing to do: the marks are drawn by init.lua.
function M.update() end

return M
