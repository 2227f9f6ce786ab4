--- Hunks: differences between two texts, moved along when one of the texts changes.

local text_diff = require('mcp-tools.editor.text.diff')

local M = {}

---@class mcp-tools.Hunk
---@field start integer 1-based first line to remove; for a pure insertion, the line it goes before
---@field count integer number of lines to remove; differs from `#old` if they have changed since
---@field old string[]
---@field new string[]
---@field changed boolean? its lines have changed since, so it cannot be applied
---@field is_there boolean? the text already contains the new lines
---@field verdict 'accepted'|'rejected'|nil
---@field reason string? of a rejection
---@field edited boolean? the user has changed the proposed lines
---@field form string? describes a change that is not in the lines, such as of line breaks or the encoding
---@field cut boolean? not all of the new lines are drawn
---@field seen mcp-tools.HunkSeen? what was on the screen

---@class mcp-tools.HunkSeen
---@field old integer? number of old lines, from the first on
---@field new integer? number of new lines, from the first on
---@field virtual integer? number of virtual lines
---@field all boolean? all of the hunk was on the screen

---@param old string[]
---@param new string[]
---@param list mcp-tools.LineSpan[]
---@return mcp-tools.Hunk[]
local function hunks_of(old, new, list)
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

--- Returns the hunks that turn one text into another.
---@param old string[]
---@param new string[]
---@return mcp-tools.Hunk[] ordered by line
function M.between(old, new)
  return hunks_of(old, new, text_diff.spans(old, new))
end

--- The same as `between`, in a thread if the texts are long.
---@param old string[]
---@param new string[]
---@param cb fun(hunks: mcp-tools.Hunk[]) on the main loop
function M.compare(old, new, cb)
  text_diff.spans_async(old, new, function(spans)
    cb(hunks_of(old, new, spans))
  end)
end

--- Returns whether the lines at a hunk are exactly these.
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

--- Returns whether a change overlaps the lines of a hunk. Two insertions at one position overlap; adjacent changes do
--- not.
---@param hunk mcp-tools.Hunk
---@param first integer
---@param after integer
---@return boolean
local function overlaps(hunk, first, after)
  local hunk_after = hunk.start + hunk.count
  if hunk.count == 0 and first == after then
    return first == hunk.start
  end
  return first < hunk_after and after > hunk.start
end

--- Returns where a hunk is after its text has changed.
---@param hunk mcp-tools.Hunk
---@param list integer[][] the changes, in order
---@return integer start
---@return integer count
local function moved(hunk, list)
  local after, shift, grown = hunk.start + hunk.count, 0, 0
  local first, last
  for _, span in ipairs(list) do
    if overlaps(hunk, span[1], span[1] + span[2]) then
      grown = grown + span[4] - span[2]
      first, last = first or span[3], span[3] + span[4]
    elseif span[1] + span[2] <= hunk.start then
      shift = shift + span[4] - span[2]
    else
      break
    end
  end
  local start = math.min(hunk.start + shift, first or math.huge)
  return start, math.max(after + shift + grown, last or 0) - start
end

--- Moves hunks to the new position of their lines in a changed text. A hunk whose lines have changed is marked until
--- they are restored.
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
    hunk.changed = not are_at(now, hunk, hunk.old) or nil
    hunk.is_there = hunk.changed and are_at(now, hunk, hunk.new) or nil
  end
end

--- Returns the text after the selected hunks are applied.
---@param lines string[]
---@param hunks mcp-tools.Hunk[] of these lines
---@param wanted fun(hunk: mcp-tools.Hunk): boolean selects the hunks to apply
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

--- Returns hunks as edits of their text.
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
