--- Draws hunks in a buffer: removed lines are highlighted, added lines are virtual lines below them.

local diff = require('mcp-tools.ui.window.diff')
local highlights = require('mcp-tools.ui.window.highlights')

local api = vim.api

local M = {}

local SPACE = api.nvim_create_namespace('mcp-tools.review')
M.SPACE = SPACE
--- Minimum width of virtual lines; in a narrower window they are cut.
local MIN_WIDTH = 10
--- Priority of the color of removed lines, above syntax colors.
local OVER_SYNTAX = 200

--- Bytes that are drawn at once, which takes some ms, and bytes that a hunk counts in addition to its text.
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
    return ' changed meanwhile: cannot be accepted', 'Warn'
  end
  return hunk.edited and ' edited' or '', 'Busy'
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
M.place_of = place_of

--- Returns the text width of the narrowest window that shows a buffer.
---@param bufnr integer
---@return integer
local function width_of(bufnr)
  local width = vim.o.columns
  for _, window in ipairs(vim.fn.win_findbuf(bufnr)) do
    local info = vim.fn.getwininfo(window)[1]
    width = math.min(width, info.width - info.textoff)
  end
  return math.max(width, MIN_WIDTH)
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
      local group = highlights.group(old_group)
      mark(first, { end_row = last, line_hl_group = group, priority = 50 })
      if old_group == 'Removed' then
        mark(first, { end_row = last + 1, hl_group = group, priority = OVER_SYNTAX, strict = false })
      end
    end
    if #hunk.new > 0 then
      mark(row, { virt_lines = diff.lines(hunk.new, bufnr, new_group, width), virt_lines_above = above })
    end
  end
  local text, state = state_of(hunk, applied)
  local group = highlights.group(state)
  if here or text ~= '' then
    local sign = here and { { ' ◀', highlights.group('Key') }, { text, group } } or { { text, group } }
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

---@param bufnr integer
---@param drawn mcp-tools.Mark.Drawn?
local function erase(bufnr, drawn)
  for _, id in ipairs(drawn and drawn.ids or {}) do
    api.nvim_buf_del_extmark(bufnr, SPACE, id)
  end
end

--- Draws hunks that have changed: the current one, and others until the batch is full.
---@param file mcp-tools.Proposal
---@param here integer? current hunk
---@param applied boolean the change was already made
---@param beside boolean it is shown side by side
---@param batch mcp-tools.Mark.Batch
function M.show(file, here, applied, beside, batch)
  local bufnr = file.bufnr
  if not bufnr or file.gone or not api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local before, width = by_buffer[bufnr], width_of(bufnr)
  local now = { drawn = {}, count = #file.hunks, waits = {} }
  before = before or now
  by_buffer[bufnr] = now
  local function draw_one(i)
    local hunk, drawn = file.hunks[i], before.drawn[i] ---@type mcp-tools.Hunk, table?
    local at = table.concat({ hunk.count, tostring(hunk.verdict), tostring(hunk.changed) }, ' ')
    local how = ('%s %s %s %d'):format(hunk.reason or '', tostring(i == here), tostring(beside), width)
    local state = at .. how .. '\n' .. table.concat(hunk.new, '\n')
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
function M.clear(bufnr)
  by_buffer[bufnr] = nil
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, SPACE, 0, -1)
  end
end

return M
