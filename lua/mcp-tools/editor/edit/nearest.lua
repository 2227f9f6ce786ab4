--- Nearest lines: places of a text that look most like lines which are not there, as a writer probably meant them.
---
--- Receives: the lines of a text, the lines that were looked for.
--- Sends: the best places with their likeness.
--- Does not know about: edits, tools.
---
--- Lines are compared without white space at their ends, by the pairs of characters that they share.

local trim = require('mcp-tools.util.trim')

local M = {}

local MAX_FOUND = 3
--- Less is no likeness.
local ENOUGH = 0.5
--- Bytes of a line that are compared.
local MAX_LINE = 200
--- Lines that are looked for.
local MAX_WANTED = 60
--- Places whose neighbourhood is compared, the best first.
local MAX_TRIED = 40

---@class mcp-tools.Nearest
---@field start_line integer from 1
---@field end_line integer
---@field likeness number 0 to 1
---@field spaces boolean only white space differs

---@param line string
---@return table<integer, integer> pairs count of each pair of bytes
---@return integer total
local function pairs_of(line)
  local counts, total = {}, 0
  local before
  for i = 1, math.min(#line, MAX_LINE) do
    local byte = line:byte(i)
    if before then
      local pair = before * 256 + byte
      counts[pair], total = (counts[pair] or 0) + 1, total + 1
    end
    before = byte
  end
  return counts, total
end

---@param counts table<integer, integer>
---@param total integer
---@param line string
---@return number
local function likeness(counts, total, line)
  local others, other_total = pairs_of(line)
  if total + other_total == 0 then
    return 0
  end
  local shared = 0
  for pair, count in pairs(others) do
    shared = shared + math.min(count, counts[pair] or 0)
  end
  return 2 * shared / (total + other_total)
end

---@param line string
local function without_spaces(line)
  return (line:gsub('%s+', ''))
end

--- The line by which the rest is found: the longest one.
---@param wanted string[]
---@return integer
local function anchor_of(wanted)
  local best = 1
  for i, line in ipairs(wanted) do
    if #trim(line) > #trim(wanted[best]) then
      best = i
    end
  end
  return best
end

---@param lines string[]
---@param wanted table[] `{ text, counts, total }`
---@param first integer
---@return mcp-tools.Nearest
local function compare(lines, wanted, first)
  local sum, same = 0, true
  for i, one in ipairs(wanted) do
    local line = lines[first + i - 1]
    local text = line and trim(line)
    if text == nil then
      same = false
    elseif text == one.text then
      sum = sum + 1
    else
      sum = sum + likeness(one.counts, one.total, text)
      same = same and without_spaces(text) == without_spaces(one.text)
    end
  end
  local last = math.min(first + #wanted - 1, #lines)
  return { start_line = first, end_line = last, likeness = sum / #wanted, spaces = same }
end

--- Keeps the best of all, best first; of equal ones the first.
---@param best { row: integer, score: number }[]
---@param row integer
---@param score number
local function keep_best(best, row, score)
  local at = #best + 1
  while at > 1 and best[at - 1].score < score do
    at = at - 1
  end
  if at <= MAX_TRIED then
    table.insert(best, at, { row = row, score = score })
    best[MAX_TRIED + 1] = nil
  end
end

--- The places that look most like the wanted lines.
---@param lines string[]
---@param wanted string[]
---@param pause? fun() called between pieces of work
---@return mcp-tools.Nearest[] best first
function M.find(lines, wanted, pause)
  local looked = {}
  for i, line in ipairs(vim.list_slice(wanted, 1, MAX_WANTED)) do
    local text = trim(line)
    local counts, total = pairs_of(text)
    looked[i] = { text = text, counts = counts, total = total }
  end
  local anchor = anchor_of(vim.list_slice(wanted, 1, MAX_WANTED))
  local one, tried = looked[anchor], {}
  for row, line in ipairs(lines) do
    local score = line == one.text and 1 or likeness(one.counts, one.total, trim(line))
    if score >= ENOUGH then
      keep_best(tried, row, score)
    end
    if pause and row % 50 == 0 then
      pause()
    end
  end
  local found = {}
  for _, one_tried in ipairs(tried) do
    local first = one_tried.row - anchor + 1
    local place = first >= 1 and compare(lines, looked, first)
    if place and place.likeness >= ENOUGH then
      table.insert(found, place)
    end
    if pause then
      pause()
    end
  end
  table.sort(found, function(a, b)
    return a.likeness == b.likeness and a.start_line < b.start_line or a.likeness > b.likeness
  end)
  return vim.list_slice(found, 1, MAX_FOUND)
end

return M
