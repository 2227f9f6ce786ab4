--- Differences of two texts, hunk by hunk, and where they are when one of the texts changes.

local text_diff = require('mcp-tools.editor.text.diff')

local M = {}

---@class mcp-tools.Hunk
---@field start integer first line of the text as it is that goes, from 1; where none goes, the line behind the new ones
---@field count integer lines there that go; more or less than in `old` when somebody has changed them since
---@field old string[]
---@field new string[]
---@field changed boolean? others have changed its lines since: it cannot be applied
---@field is_there boolean? the text has its new lines already, whoever wrote them
---@field verdict 'accepted'|'rejected'|nil
---@field reason string? of a rejection
---@field edited boolean? the person has changed what is proposed
---@field form string? its lines stay: what else becomes of the file

---@param old string[]
---@param new string[]
---@param list mcp-tools.LineSpan[]
---@return mcp-tools.Hunk[]
local function made_of(old, new, list)
  local hunks = {}
  for i, span in ipairs(list) do
    hunks[i] = {
      start = span[1],
      count = span[2],
      old = vim.list_slice(old, span[1], span[1] + span[2] - 1),
      new = vim.list_slice(new, span[3], span[3] + span[4] - 1),
    }
  end
  return hunks
end

--- The hunks that make one text of another.
---@param old string[]
---@param new string[]
---@return mcp-tools.Hunk[] in order
function M.between(old, new)
  return made_of(old, new, text_diff.spans(old, new))
end

--- The same, compared beside the main loop where the texts are long.
---@param old string[]
---@param new string[]
---@param cb fun(hunks: mcp-tools.Hunk[]) on the main loop
function M.compare(old, new, cb)
  text_diff.later(old, new, function(spans)
    cb(made_of(old, new, spans))
  end)
end

--- Does a text have these lines, and no others, where a hunk is?
---@param lines string[]
---@param hunk mcp-tools.Hunk
---@param wanted string[]
---@return boolean
local function are_at(lines, hunk, wanted)
  if hunk.count ~= #wanted then
    return false
  end
  for i, line in ipairs(wanted) do
    if lines[hunk.start + i - 1] ~= line then
      return false
    end
  end
  return true
end

---@param lines string[]
---@param hunk mcp-tools.Hunk
---@return boolean
local function fits(lines, hunk)
  return are_at(lines, hunk, hunk.old)
end

--- Has a change touched the lines of a hunk? Beside them it has not; two that add at one place touch each other.
---@param hunk mcp-tools.Hunk
---@param first integer
---@param behind integer
---@return boolean
local function is_touched(hunk, first, behind)
  local hunk_behind = hunk.start + hunk.count
  if hunk.count == 0 and first == behind then
    return first == hunk.start
  end
  return first < hunk_behind and behind > hunk.start
end

--- Where a hunk is after changes of its text.
---@param hunk mcp-tools.Hunk
---@param list integer[][] the changes, in order
---@return integer start
---@return integer count
local function moved(hunk, list)
  local behind, shift, grown = hunk.start + hunk.count, 0, 0
  local first, last
  for _, span in ipairs(list) do
    if is_touched(hunk, span[1], span[1] + span[2]) then
      grown = grown + span[4] - span[2]
      first, last = first or span[3], span[3] + span[4]
    elseif span[1] + span[2] <= hunk.start then
      shift = shift + span[4] - span[2]
    else
      break
    end
  end
  local start = math.min(hunk.start + shift, first or math.huge)
  return start, math.max(behind + shift + grown, last or 0) - start
end

--- Moves hunks to where their lines are in a text that has changed. Those whose lines are others now are marked; when
--- the lines come back, they are not any more.
---@param hunks mcp-tools.Hunk[] of `before`
---@param before string[]
---@param now string[]
function M.follow(hunks, before, now)
  local list = text_diff.spans(before, now)
  if #list == 0 then
    return
  end
  for _, hunk in ipairs(hunks) do
    hunk.start, hunk.count = moved(hunk, list)
    hunk.changed = not fits(now, hunk) or nil
    hunk.is_there = hunk.changed and are_at(now, hunk, hunk.new) or nil
  end
end

--- The text that hunks make.
---@param lines string[]
---@param hunks mcp-tools.Hunk[] of these lines
---@param wanted fun(hunk: mcp-tools.Hunk): boolean those that count
---@return string[]
function M.applied(lines, hunks, wanted)
  local out, row = {}, 1
  for _, hunk in ipairs(hunks) do
    if not hunk.changed and wanted(hunk) then
      vim.list_extend(out, lines, row, hunk.start - 1)
      vim.list_extend(out, hunk.new)
      row = hunk.start + hunk.count
    end
  end
  return vim.list_extend(out, lines, row, #lines)
end

--- Hunks as edits of their text, for editor/edit.
---@param hunks mcp-tools.Hunk[]
---@return mcp-tools.Edit[]
function M.edits(hunks)
  return vim.tbl_map(function(hunk)
    local first = hunk.start - 1
    local text = #hunk.new > 0 and table.concat(hunk.new, '\n') .. '\n' or ''
    return { start_line = first, start_col = 0, end_line = first + hunk.count, end_col = 0, text = text }
  end, hunks)
end

return M
