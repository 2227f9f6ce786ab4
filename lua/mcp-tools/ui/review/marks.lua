--- Hunks in the buffer that they are for: what goes is coloured, what comes stands below it as virtual lines.

local highlights = require('mcp-tools.ui.window.highlights')
local syntax = require('mcp-tools.ui.window.diff')

local api = vim.api

local M = {}

local SPACE = api.nvim_create_namespace('mcp-tools.review')
M.SPACE = SPACE
--- Cells; in a window that is narrower rows are cut.
local MIN_WIDTH = 10
--- A line that goes has one colour, as in all differences (layout/diff.lua).
local OVER_SYNTAX = 200

--- Bytes that are drawn at a stretch, in some ms (their language is parsed); and what a hunk takes besides its own.
local STRETCH, HUNK = 4 * 1024, 500

---@class mcp-tools.Mark.Drawn
---@field id integer[]
---@field said string
---@field start integer of the hunk, as it was drawn
---@field row integer? of its first mark

---@class mcp-tools.Mark.Buffer
---@field drawn table<integer, mcp-tools.Mark.Drawn> hunk → its marks
---@field count integer of hunks
---@field waits table<integer, true> hunks whose marks are not as they should be yet

---@type table<integer, mcp-tools.Mark.Buffer>
local by_buffer = {}

---@class mcp-tools.Mark.Stretch
---@field left integer bytes
---@field cut boolean? there was more to draw

--- What may be drawn before the editor has a turn.
---@return mcp-tools.Mark.Stretch
function M.stretch()
  return { left = STRETCH }
end

---@param hunk mcp-tools.Hunk
---@param applied boolean
---@return string text
---@return string name of its group
local function state_of(hunk, applied)
  if hunk.verdict == 'accepted' then
    return applied and ' to be reverted' or ' accepted', 'Good'
  elseif hunk.verdict == 'rejected' then
    local word = applied and ' kept' or ' rejected'
    return word .. (hunk.reason and ': ' .. hunk.reason or ''), 'Warn'
  elseif hunk.changed then
    return ' changed meanwhile: it cannot be accepted', 'Warn'
  end
  return hunk.edited and ' edited' or '', 'Busy'
end

--- Where its marks are: the last line before what comes, from 0; before the first line it is above that.
---@param hunk mcp-tools.Hunk
---@param count integer lines of the buffer
---@return integer row
---@return boolean above
local function place_of(hunk, count)
  local row = math.min(hunk.start + hunk.count - 2, count - 1)
  return math.max(row, 0), row < 0
end
M.place_of = place_of

--- Cells of a row of text where the buffer is shown; of several windows, of the narrowest.
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
---@param here boolean
---@param applied boolean what is proposed is there already
---@param beside boolean it is shown side by side: only what was said of it
---@return integer[] ids
local function draw(bufnr, width, hunk, here, applied, beside)
  local ids, count = {}, api.nvim_buf_line_count(bufnr)
  local function mark(row, opts)
    table.insert(ids, api.nvim_buf_set_extmark(bufnr, SPACE, row, 0, opts))
  end
  local row, above = place_of(hunk, count)
  local going, coming = applied and 'Added' or 'Removed', applied and 'Removed' or 'Added'
  local is_open = hunk.verdict == nil or hunk.verdict == 'accepted'
  if is_open and not hunk.changed and not beside then
    local first, last = hunk.start - 1, math.min(hunk.start + hunk.count - 2, count - 1)
    if first <= last then -- one mark for all lines: a hunk may have hundreds of thousands
      local group = highlights.group(going)
      mark(first, { end_row = last, line_hl_group = group, priority = 50 })
      if going == 'Removed' then
        mark(first, { end_row = last + 1, hl_group = group, priority = OVER_SYNTAX, strict = false })
      end
    end
    if #hunk.new > 0 then
      mark(row, { virt_lines = syntax.lines(hunk.new, bufnr, coming, width), virt_lines_above = above })
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

--- Marks move with their text; are those of a hunk where it is now?
---@param bufnr integer
---@param drawn mcp-tools.Mark.Drawn
---@param hunk mcp-tools.Hunk
---@return boolean
local function is_in_place(bufnr, drawn, hunk)
  return not drawn.row
    or api.nvim_buf_get_extmark_by_id(bufnr, SPACE, drawn.id[1], {})[1] == drawn.row + hunk.start - drawn.start
end

---@param bufnr integer
---@param drawn mcp-tools.Mark.Drawn?
local function erase(bufnr, drawn)
  for _, id in ipairs(drawn and drawn.id or {}) do
    api.nvim_buf_del_extmark(bufnr, SPACE, id)
  end
end

--- Draws what has become another since it was drawn: the hunk that the person is at, and others while there is time.
---@param file mcp-tools.Proposal
---@param here integer? the hunk that the person is at
---@param applied boolean
---@param beside boolean it is shown side by side
---@param stretch mcp-tools.Mark.Stretch
function M.show(file, here, applied, beside, stretch)
  local bufnr = file.bufnr
  if not bufnr or file.gone or not api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local before, width = by_buffer[bufnr], width_of(bufnr)
  local now = { drawn = {}, count = #file.hunks, waits = {} }
  before = before or now
  by_buffer[bufnr] = now
  local function draw_one(i)
    local hunk, drawn = file.hunks[i], before.drawn[i]
    local at = table.concat({ hunk.count, tostring(hunk.verdict), tostring(hunk.changed) }, ' ')
    local how = ('%s %s %s %d'):format(hunk.reason or '', tostring(i == here), tostring(beside), width)
    local said = at .. how .. '\n' .. table.concat(hunk.new, '\n')
    local is_old = not drawn or drawn.said ~= said or not is_in_place(bufnr, drawn, hunk)
    if is_old and stretch.left <= 0 and i ~= here then
      stretch.cut, now.waits[i] = true, true
    elseif is_old then
      stretch.left = stretch.left - #said - HUNK
      erase(bufnr, drawn)
      local ids = draw(bufnr, width, hunk, i == here, applied, beside)
      local row = ids[1] and api.nvim_buf_get_extmark_by_id(bufnr, SPACE, ids[1], {})[1]
      drawn = { said = said, id = ids, start = hunk.start, row = row }
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

--- Is a hunk drawn as it is?
---@param bufnr integer
---@param i integer
---@return boolean
function M.is_drawn(bufnr, i)
  local known = by_buffer[bufnr]
  return known ~= nil and not known.waits[i]
end

--- Takes all marks away.
---@param bufnr integer
function M.clear(bufnr)
  by_buffer[bufnr] = nil
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, SPACE, 0, -1)
  end
end

return M
