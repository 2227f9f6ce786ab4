--- Puts rows into a buffer so that nothing flickers: what is the same is left alone.
---
--- Receives: a buffer, the rows that it shows, the rows that it is to show.
--- Sends: lines that differ, and their marks.
--- Does not know about: windows, the cursor.

local highlights = require('mcp-tools.ui.layout.highlights')

local api = vim.api

local M = {}

local NAMESPACE = api.nvim_create_namespace('mcp-tools-layout')

---@param one mcp-tools.Row?
---@param other mcp-tools.Row?
---@return boolean
local function same(one, other)
  return one ~= nil and other ~= nil and one.text == other.text and vim.deep_equal(one.marks, other.marks)
end

---@param buffer integer
---@param first integer from 0
---@param last integer of what was there, exclusive
---@param rows mcp-tools.Row[] that stand there now
local function replace(buffer, first, last, rows)
  api.nvim_buf_clear_namespace(buffer, NAMESPACE, first, last)
  local lines = vim.tbl_map(function(row)
    return row.text
  end, rows)
  api.nvim_buf_set_lines(buffer, first, last, false, lines)
  for i, row in ipairs(rows) do
    for _, mark in ipairs(row.marks) do
      local to = math.min(mark[2], #row.text) -- blanks at its end are cut off
      if mark[1] < to then
        local where = { end_col = to, hl_group = highlights.group(mark[3]) }
        api.nvim_buf_set_extmark(buffer, NAMESPACE, first + i - 1, mark[1], where)
      end
    end
  end
end

--- Shows `rows` in place of `before`.
---@param buffer integer
---@param before mcp-tools.Row[] what the buffer shows; empty when it is new
---@param rows mcp-tools.Row[]
---@return integer changed lines that were written
function M.update(buffer, before, rows)
  local head, changed = 0, 0
  while head < #before and head < #rows and same(before[head + 1], rows[head + 1]) do
    head = head + 1
  end
  if head == #before and head == #rows and head > 0 then
    return 0
  end
  local tail = 0
  local most = math.min(#before, #rows) - head
  while tail < most and same(before[#before - tail], rows[#rows - tail]) do
    tail = tail + 1
  end
  vim.bo[buffer].modifiable = true
  if #before == #rows then -- as many as before: each by itself, those between stay
    for i = head + 1, #rows - tail do
      if not same(before[i], rows[i]) then
        replace(buffer, i - 1, i, { rows[i] })
        changed = changed + 1
      end
    end
  else
    local new = vim.list_slice(rows, head + 1, #rows - tail)
    replace(buffer, head, #before == 0 and -1 or #before - tail, new)
    changed = #new
  end
  vim.bo[buffer].modifiable = false
  return changed
end

return M
