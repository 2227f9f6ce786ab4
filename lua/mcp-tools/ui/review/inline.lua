--- Review in the buffers themselves: removed lines are highlighted, added lines are virtual lines below them.
---
--- It opens in the window that shows the file, or in the user's current one. A new file has its own buffer, so that
--- `:w` writes nothing.

local diff = require('mcp-tools.ui.window.diff')
local highlighting = require('mcp-tools.editor.buffer.highlighting')
local notify = require('mcp-tools.notify')
local render = require('mcp-tools.ui.window.render')
local visible = require('mcp-tools.ui.window.visible')
local windows = require('mcp-tools.editor.user.windows')

local api = vim.api

local M = {}

local SPACE = api.nvim_create_namespace('mcp-tools.review')
M.SPACE = SPACE
--- Minimum width of virtual lines; in a narrower window they are cut.
local MIN_WIDTH = 10
--- Maximum number of lines of a hunk in which changed parts are highlighted.
local MAX_PAIRED = 100
--- Priority of the color of removed lines, above syntax colors.
local OVER_SYNTAX = 200

--- Bytes that are drawn in one batch, which takes a few ms, and the cost of each hunk in addition to its text.
local BATCH, HUNK = 4 * 1024, 500

---@class mcp-tools.Mark.Drawn
---@field ids integer[]
---@field state string everything that was drawn
---@field start integer start of the hunk when it was drawn
---@field row integer? row of the first mark when it was drawn

---@class mcp-tools.Mark.Buffer
---@field drawn table<integer, mcp-tools.Mark.Drawn> by hunk
---@field count integer number of hunks
---@field waits table<integer, true> hunks that must still be drawn
---@field width integer of the virtual lines

---@type table<integer, mcp-tools.Mark.Buffer>
local by_buffer = {}

---@class mcp-tools.Mark.Batch
---@field left integer bytes
---@field cut boolean? there was more to draw

--- Returns the amount to draw before the main loop continues.
---@return mcp-tools.Mark.Batch
function M.batch()
  return { left = BATCH }
end

--- Returns what the user can do with a hunk whose lines have changed.
---@param applied boolean
---@return string
function M.ways_out(applied)
  return applied and 'y keeps this text' or 'n keeps this text, e shows the proposal'
end

---@param hunk mcp-tools.Hunk
---@param applied boolean
---@return string text
---@return string name highlight group
local function state_of(hunk, applied)
  if hunk.verdict == 'accepted' then
    return applied and ' to be reverted' or ' accepted', 'Good'
  elseif hunk.verdict == 'rejected' then
    local word = applied and ' kept' or ' rejected'
    return word .. (hunk.reason and ': ' .. hunk.reason or ''), 'Warn'
  elseif hunk.changed then
    return ' changed meanwhile: ' .. M.ways_out(applied), 'Warn'
  end
  return hunk.form and ' ' .. hunk.form or hunk.edited and ' edited' or '', 'Busy'
end

--- Returns where the virtual lines of a hunk are attached.
---@param hunk mcp-tools.Hunk
---@param count integer number of lines in the buffer
---@return integer row 0-based
---@return boolean above above the row, if the hunk is before the first line
local function place_of(hunk, count)
  local row = math.min(hunk.start + hunk.count - 2, count - 1)
  return math.max(row, 0), row < 0
end

--- Returns the text width of the narrowest window that shows a buffer.
---@param bufnr integer
---@return integer
local function text_width(bufnr)
  local width = vim.o.columns
  for _, window in ipairs(vim.fn.win_findbuf(bufnr)) do
    local info = vim.fn.getwininfo(window)[1]
    width = math.min(width, info.width - info.textoff)
  end
  return width
end

---@param bufnr integer
---@param width integer
---@param hunk mcp-tools.Hunk
---@param here boolean it is the current hunk
---@param applied boolean the change was already made
---@param beside boolean it is shown side by side: draw only its state
---@return integer[] ids
local function draw(bufnr, width, hunk, here, applied, beside)
  local ids, count = {}, api.nvim_buf_line_count(bufnr)
  local function mark(row, opts)
    table.insert(ids, api.nvim_buf_set_extmark(bufnr, SPACE, row, 0, opts))
  end
  local row, above = place_of(hunk, count)
  local old_group, new_group = applied and 'Added' or 'Removed', applied and 'Removed' or 'Added'
  local is_open = hunk.verdict == nil or hunk.verdict == 'accepted'
  if is_open and not hunk.changed and not beside then
    local first, last = hunk.start - 1, math.min(hunk.start + hunk.count - 2, count - 1)
    if first <= last then -- one mark for all lines: a hunk may have hundreds of thousands
      local group = render.group(old_group)
      mark(first, { end_row = last, line_hl_group = group, priority = 50 })
      if old_group == 'Removed' then
        mark(first, { end_row = last + 1, hl_group = group, priority = OVER_SYNTAX, strict = false })
      end
    end
    local is_paired = hunk.count == #hunk.new and hunk.count <= MAX_PAIRED
    local old = is_paired and api.nvim_buf_get_lines(bufnr, first, first + hunk.count, false) or nil
    old = old and #old == hunk.count and old or nil -- lines at the end may just have been deleted
    for i, line in ipairs(old or {}) do
      local part = diff.part(line, hunk.new[i])
      if part and part[2] >= part[1] then
        local at = { first + i - 1, part[1] - 1 }
        local opts = { end_col = part[2], hl_group = render.group('Part'), priority = OVER_SYNTAX + 1 }
        table.insert(ids, api.nvim_buf_set_extmark(bufnr, SPACE, at[1], at[2], opts))
      end
    end
    if #hunk.new > 0 then
      local rows, is_whole = diff.lines(hunk.new, bufnr, new_group, width, old)
      hunk.cut = not is_whole
      mark(row, { virt_lines = rows, virt_lines_above = above })
    end
  end
  local text, state = state_of(hunk, applied)
  local group = render.group(state)
  if here or text ~= '' then
    local sign = here and { { ' ◀', render.group('Key') }, { text, group } } or { { text, group } }
    mark(math.min(math.max(hunk.start - 1, 0), row), { virt_text = sign, virt_text_pos = 'eol' })
  end
  return ids
end

--- Returns whether the marks of a hunk have moved along with it.
---@param bufnr integer
---@param drawn mcp-tools.Mark.Drawn
---@param hunk mcp-tools.Hunk
---@return boolean
local function is_in_place(bufnr, drawn, hunk)
  return not drawn.row
    or api.nvim_buf_get_extmark_by_id(bufnr, SPACE, drawn.ids[1], {})[1] == drawn.row + hunk.start - drawn.start
end

--- Redraws the windows of a buffer: Neovim leaves virtual lines on the screen whose mark is deleted after a change.
---@param bufnr integer
local function redraw(bufnr)
  for _, window in ipairs(vim.fn.win_findbuf(bufnr)) do
    api.nvim__redraw({ win = window, valid = false })
  end
end

---@param bufnr integer
---@param drawn mcp-tools.Mark.Drawn?
local function erase(bufnr, drawn)
  for _, id in ipairs(drawn and drawn.ids or {}) do
    api.nvim_buf_del_extmark(bufnr, SPACE, id)
  end
  redraw(bufnr)
end

--- Draws hunks that have changed: the current one, and others until the batch is full.
---@param file mcp-tools.Proposal
---@param here integer? current hunk
---@param applied boolean the change was already made
---@param beside boolean it is shown side by side
---@param batch mcp-tools.Mark.Batch
function M.show_marks(file, here, applied, beside, batch)
  local bufnr = file.bufnr
  if not bufnr or file.gone or not api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local before, width = by_buffer[bufnr], math.max(text_width(bufnr), MIN_WIDTH)
  local now = { drawn = {}, count = #file.hunks, waits = {}, width = width }
  before = before or now
  by_buffer[bufnr] = now
  local function draw_one(i)
    local hunk, drawn = file.hunks[i], before.drawn[i] ---@type mcp-tools.Hunk, table?
    local how = { hunk.count, hunk.verdict or '', hunk.changed == true, i == here, beside, width, hunk.reason or '' }
    local state = table.concat(vim.tbl_map(tostring, how), ' ') .. '\n' .. table.concat(hunk.new, '\n')
    local is_old = not drawn or drawn.state ~= state or not is_in_place(bufnr, drawn, hunk)
    if is_old and batch.left <= 0 and i ~= here then
      batch.cut, now.waits[i] = true, true
    elseif is_old then
      batch.left = batch.left - #state - HUNK
      erase(bufnr, drawn)
      local ids = draw(bufnr, width, hunk, i == here, applied, beside)
      local row = ids[1] and api.nvim_buf_get_extmark_by_id(bufnr, SPACE, ids[1], {})[1]
      drawn = { state = state, ids = ids, start = hunk.start, row = row }
    end
    now.drawn[i] = drawn
  end
  if here and file.hunks[here] then
    draw_one(here)
  end
  for i = 1, now.count do
    if i ~= here then
      draw_one(i)
    end
  end
  for i = now.count + 1, before.count do
    erase(bufnr, before.drawn[i])
  end
end

--- Returns whether a hunk is drawn in its current state.
---@param bufnr integer
---@param i integer
---@return boolean
function M.is_drawn(bufnr, i)
  local known = by_buffer[bufnr]
  return known ~= nil and not known.waits[i]
end

--- Removes all marks.
---@param bufnr integer
function M.clear_marks(bufnr)
  by_buffer[bufnr] = nil
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, SPACE, 0, -1)
    redraw(bufnr)
  end
end

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

---@type table<mcp-tools.Proposal, integer> buffers of new files
local new_buffers = setmetatable({}, { __mode = 'k' })
---@type table<mcp-tools.Proposal, string[]> last known texts of `new_buffers`
local new_texts = setmetatable({}, { __mode = 'k' })
---@type table<integer, integer> window → previous buffer
local came_from = {}

--- Makes `:w` accept the text of a buffer with proposed text. `:wall` in another buffer does not; `:w OTHER` writes a
--- copy.
---@param bufnr integer
---@param accept fun(): boolean called by `:write`; whether it is meant for the review
function M.accept_by_write(bufnr, accept)
  vim.bo[bufnr].buftype = 'acwrite'
  vim.bo[bufnr].modified = false
  api.nvim_clear_autocmds({ event = 'BufWriteCmd', buffer = bufnr })
  api.nvim_create_autocmd('BufWriteCmd', {
    buffer = bufnr,
    desc = 'mcp-tools: accept the proposed text',
    callback = function(args)
      if args.file ~= api.nvim_buf_get_name(bufnr) then
        local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
        vim.fn.writefile(lines, args.file)
      elseif accept() then
        vim.bo[bufnr].modified = false
      end
    end,
  })
end

--- Returns the buffer of a new file.
---@param file mcp-tools.Proposal
---@return integer bufnr
local function new_file_buffer(file)
  local known = new_buffers[file]
  if known and api.nvim_buf_is_valid(known) then
    return known
  end
  local bufnr = api.nvim_create_buf(false, true)
  new_buffers[file] = bufnr
  api.nvim_buf_set_name(bufnr, ('mcp-tools://new/%d/%s'):format(bufnr, vim.fs.basename(file.path)))
  new_texts[file] = file:proposed()
  M.set_first_text(bufnr, new_texts[file])
  highlighting.set_filetype(bufnr, vim.filetype.match({ filename = file.path, buf = bufnr }) or '')
  vim.bo[bufnr].modifiable = file.editable
  api.nvim_buf_set_extmark(bufnr, SPACE, 0, 0, {
    end_row = api.nvim_buf_line_count(bufnr) - 1,
    line_hl_group = render.group('Added'),
    right_gravity = false,
    end_right_gravity = true,
    priority = 50,
  })
  return bufnr
end

---@param bufnr integer
---@param files mcp-tools.Proposal[]
---@return integer? file index of the new file that the buffer belongs to
local function new_file_of(bufnr, files)
  for i, file in ipairs(files) do
    if new_buffers[file] == bufnr then
      return i
    end
  end
end

--- Shows the previous buffer of a window again, or closes the window if it was opened for a new file.
---@param window integer
local function restore(window)
  local before = came_from[window]
  if before and api.nvim_buf_is_valid(before) then
    pcall(api.nvim_win_set_buf, window, before)
  elseif #api.nvim_list_wins() > 1 then
    windows.close(window)
  end
end

--- Leaves the new file that the current window shows, if any.
function M.leave_new_file()
  if vim.tbl_contains(vim.tbl_values(new_buffers), api.nvim_get_current_buf()) then
    restore(api.nvim_get_current_win())
  end
end

--- Deletes a buffer with proposed text, unless the user has typed text there that was not used.
---@param bufnr integer
---@param known string[] last known text
function M.drop_buffer(bufnr, known)
  if vim.deep_equal(api.nvim_buf_get_lines(bufnr, 0, -1, false), known) then
    pcall(api.nvim_buf_delete, bufnr, { force = true })
  else
    api.nvim_clear_autocmds({ event = 'BufWriteCmd', buffer = bufnr })
    vim.bo[bufnr].buftype, vim.bo[bufnr].buflisted = 'nofile', true
    notify.warn(('what you typed was not used; it is in buffer %d'):format(bufnr))
  end
end

--- Deletes the buffer of a new file.
---@param file mcp-tools.Proposal
---@param is_decided boolean by the user
function M.drop_new_file(file, is_decided)
  local bufnr = new_buffers[file]
  new_buffers[file] = nil
  if bufnr and api.nvim_buf_is_valid(bufnr) then
    vim.iter(vim.fn.win_findbuf(bufnr)):each(restore)
    M.drop_buffer(bufnr, (is_decided or not file.rewritten) and new_texts[file] or {})
  end
end

---@param file mcp-tools.Proposal
---@return integer
local function buffer_of(file)
  return file.bufnr or new_file_buffer(file)
end

--- Shows a file: in a window that already shows it, in the current window if it shows a file, or in a new one.
---@param file mcp-tools.Proposal
---@param accept fun(): boolean called by `:w` in the buffer of a new file
---@return mcp-tools.ReviewWindow[] windows including the current one
function M.open(file, accept)
  local bufnr = buffer_of(file)
  if not file.bufnr then
    M.accept_by_write(bufnr, accept)
  end
  highlighting.guard_shown(bufnr)
  if vim.bo.buftype ~= 'terminal' then -- fails in Terminal mode
    vim.cmd("normal! m'")
  end
  local found = vim.iter(api.nvim_tabpage_list_wins(0)):find(function(window)
    return api.nvim_win_get_buf(window) == bufnr and api.nvim_win_get_config(window).relative == ''
  end)
  if found then
    api.nvim_set_current_win(found)
  else
    local is_text = vim.bo.buftype == '' and api.nvim_win_get_config(0).relative == ''
    local before = api.nvim_get_current_buf()
    vim.bo[bufnr].buflisted = file.bufnr ~= nil
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
  local row, above = place_of(hunk, count)
  api.nvim_win_set_cursor(0, { math.min(hunk.count > 0 and hunk.start or row + 1, count), 0 })
  local height = api.nvim_win_get_height(0)
  vim.cmd('normal! ' .. (hunk.count + #hunk.new > height / 2 and 'zvzt' or 'zvzz'))
  if above then
    visible.show_above(0)
  end
end

--- Returns where the cursor is.
---@param files mcp-tools.Proposal[]
---@param current? integer the hunk to return if several are at the cursor
---@return integer? file index of the file in the current buffer
---@return integer? hunk at the cursor
---@return integer? before last hunk that begins before the cursor
function M.at_cursor(files, current)
  local bufnr, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1]
  local new = new_file_of(bufnr, files)
  if new then
    return new, 1, 1
  end
  for i, file in ipairs(files) do
    if file.bufnr == bufnr then
      file:sync()
      local before, found = 0, nil
      for j, hunk in ipairs(file.hunks) do
        local last = hunk.start + hunk.count - 1
        if row >= math.min(hunk.start, last) and row <= math.max(last, 1) and (not found or j == current) then
          found = j
        end
        before = hunk.start <= row and j or before
      end
      return i, found, found or before
    end
  end
end

--- Returns the number of virtual rows of a hunk.
---@param bufnr integer
---@param i integer
---@return integer
local function virtual_rows(bufnr, i)
  local rows = 0
  for _, id in ipairs(((by_buffer[bufnr] or {}).drawn or {})[i] and by_buffer[bufnr].drawn[i].ids or {}) do
    local details = api.nvim_buf_get_extmark_by_id(bufnr, SPACE, id, { details = true })[3] or {}
    rows = rows + #(details.virt_lines or {})
  end
  return rows
end

--- Returns the windows of the current tab page that show a file, the current one first.
---@param file mcp-tools.Proposal
---@return integer[]
function M.windows(file)
  local bufnr, here = file.bufnr or new_buffers[file], api.nvim_get_current_win()
  local found = vim.tbl_filter(function(window)
    return api.nvim_win_get_buf(window) == bufnr
  end, api.nvim_tabpage_list_wins(0))
  table.sort(found, function(a, b)
    return a == here and b ~= here
  end)
  return found
end

--- A part of a hunk in a window.
---@class mcp-tools.HunkPart
---@field name 'old'|'new'|'virtual'
---@field window integer
---@field first integer first line; of virtual lines, the line above them, 0 above the first line
---@field count integer number of lines, or of virtual lines
---@field cut boolean? there are more virtual lines than are drawn

--- Returns the parts of a hunk that the user has to read.
---@param file mcp-tools.Proposal
---@param i integer
---@return mcp-tools.HunkPart[]? parts nil: no window of the tab page shows it, or it is not drawn yet
function M.parts(file, i)
  local hunk, bufnr, parts = file.hunks[i], file.bufnr or new_buffers[file], {}
  if not hunk or not bufnr or not api.nvim_buf_is_valid(bufnr) or file.bufnr and not M.is_drawn(bufnr, i) then
    return nil
  end
  local count = api.nvim_buf_line_count(bufnr)
  local row, above = place_of(hunk, count)
  for _, window in ipairs(M.windows(file)) do
    local function add(name, first, lines, cut)
      table.insert(parts, { name = name, window = window, first = first, count = lines, cut = cut })
    end
    if file.bufnr then
      add('old', hunk.start, hunk.count)
      local rows = virtual_rows(bufnr, i)
      local is_cut = hunk.cut or rows < #hunk.new or by_buffer[bufnr].width > text_width(bufnr)
      add('virtual', above and 0 or row + 1, rows, is_cut and #hunk.new > 0)
    else
      add('new', 1, count)
    end
  end
  return #parts > 0 and parts or nil
end

--- Returns the text of a new file if the user has edited it since the proposal was updated.
---@param file mcp-tools.Proposal
---@return string[]?
function M.typed(file)
  local bufnr = file.is_new and file.editable and new_buffers[file]
  local lines = bufnr and api.nvim_buf_is_valid(bufnr) and api.nvim_buf_get_lines(bufnr, 0, -1, false)
  if not lines or vim.deep_equal(lines, file:proposed()) then
    return nil
  end
  vim.bo[bufnr].modified = false
  new_texts[file] = lines
  return lines
end

return M
