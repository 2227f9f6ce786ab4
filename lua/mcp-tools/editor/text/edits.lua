--- Text edits as lists of ranges and new texts: checks them, orders them, and reduces them to what differs.

local errors = require('mcp-tools.errors')
local text_diff = require('mcp-tools.editor.text.diff')

local M = {}

---@class mcp-tools.Edit 0-based lines, columns in bytes; the end is exclusive
---@field start_line integer
---@field start_col integer
---@field end_line integer the end of the text is the line after the last one, column 0
---@field end_col integer
---@field text string lines end with "\n"
---@field index integer? position in the arguments of the call, from 1

---@class mcp-tools.Replacement
---@field row integer
---@field col integer
---@field end_row integer
---@field end_col integer
---@field lines string[]

--- Maximum number of lines replaced one by one, and of ranges replaced; beyond that, neighboring ranges are merged.
--- Each replacement costs time in Neovim and in plugins.
local MAX_SINGLE, MAX_RANGES = 2000, 1000
--- Length of a line, in bytes, in which replacements are merged: Neovim copies the line for each.
local LONG_LINE = 10000

---@param field string
---@param text string
local function invalid(field, text)
  return errors.new('validation_error', ('%s: %s'):format(field, text))
end

---@param text string
---@return string[] lines
local function split(text)
  local lines, at = {}, 1
  local stop = text:find('\n', 1, true)
  while stop do
    lines[#lines + 1] = text:sub(at, stop - 1)
    at = stop + 1
    stop = text:find('\n', at, true)
  end
  lines[#lines + 1] = text:sub(at)
  return lines
end

--- Replaces CR LF in the new texts by LF, unless some line of the old text ends with CR.
---@param edits mcp-tools.Edit[]
---@param count integer lines of the text
---@param line_of fun(row: integer): string
---@return mcp-tools.Edit[]
local function with_line_breaks(edits, count, line_of)
  local has_break = vim.iter(edits):any(function(edit)
    return edit.text:find('\r\n', 1, true) ~= nil
  end)
  if not has_break then
    return edits
  end
  for row = 0, count - 1 do
    if line_of(row):byte(-1) == 13 then
      return edits
    end
  end
  return vim.tbl_map(function(edit)
    return vim.tbl_extend('force', edit, { text = (edit.text:gsub('\r\n', '\n')) })
  end, edits)
end

--- Merges replacements in the same long line. They may have line breaks in their new text.
---@param list mcp-tools.Replacement[] ordered
---@param line_of fun(row: integer): string
---@return mcp-tools.Replacement[]
local function joined(list, line_of)
  local out, i = {}, 1
  local function is_in(row, at)
    return at and at.row == row and at.end_row == row
  end
  while i <= #list do
    local first = list[i]
    local row = first.row
    local line = is_in(row, first) and is_in(row, list[i + 1]) and line_of(row) or ''
    if #line > LONG_LINE then
      local pieces, col = { table.concat(first.lines, '\n') }, first.end_col
      while is_in(row, list[i + 1]) do
        i = i + 1
        vim.list_extend(pieces, { line:sub(col + 1, list[i].col), table.concat(list[i].lines, '\n') })
        col = list[i].end_col
      end
      first = { row = row, col = first.col, end_row = row, end_col = col, lines = split(table.concat(pieces)) }
    end
    table.insert(out, first)
    i = i + 1
  end
  return out
end

--- Merges the edits that reach the line after the last one into one that ends inside the text. If the last lines are
--- deleted, the line break before them is deleted too.
---@param list mcp-tools.Edit[] ordered, without overlaps; the merged ones are removed
---@param count integer
---@param line_of fun(row: integer): string
---@return mcp-tools.Replacement? tail
local function take_tail(list, count, line_of)
  local row, col, text = count, 0, ''
  local function take()
    local edit = table.remove(list)
    row, col, text = edit.start_line, edit.start_col, edit.text .. text
  end
  while #list > 0 and list[#list].end_line >= count do
    take()
  end
  while text == '' and col == 0 and #list > 0 and list[#list].end_line == row and list[#list].end_col == 0 do
    take()
  end
  local last = count - 1
  local end_col = #line_of(last)
  if row >= count then
    if text == '' then
      return nil
    end
    row, col, text = last, end_col, '\n' .. text
  elseif text == '' and col == 0 and row > 0 then
    row, col = row - 1, #line_of(row - 1)
  end
  local lines = split(text)
  if #lines > 1 and lines[#lines] == '' then
    table.remove(lines)
  end
  return { row = row, col = col, end_row = last, end_col = end_col, lines = lines }
end

---@param edit mcp-tools.Edit
---@param count integer
---@param line_of fun(row: integer): string
---@return string?
local function fault_of(edit, count, line_of)
  local function outside(row, col)
    if row == count and col == 0 then
      return false
    end
    return row < 0 or row >= count or col < 0 or col > #line_of(row)
  end
  if outside(edit.start_line, edit.start_col) or outside(edit.end_line, edit.end_col) then
    local text = '%d:%d to %d:%d is not in the text (%d lines)'
    return text:format(edit.start_line, edit.start_col, edit.end_line, edit.end_col, count)
  elseif edit.end_line < edit.start_line or (edit.end_line == edit.start_line and edit.end_col < edit.start_col) then
    return 'its end is before its start'
  end
end

--- Checks edits and sorts them by position. Insertions at one position keep their order and come before a replacement
--- that starts there.
---@param edits mcp-tools.Edit[]
---@param count integer lines of the text, at least one
---@param line_of fun(row: integer): string
---@param is_exact? boolean a CR is always part of the new text, never of a line break
---@return mcp-tools.Replacement[]?
---@return mcp-tools.Error? err
function M.ordered(edits, count, line_of, is_exact)
  edits = is_exact and edits or with_line_breaks(edits, count, line_of)
  local order = {}
  for i, edit in ipairs(edits) do
    local fault = fault_of(edit, count, line_of)
    if fault then
      return nil, invalid(('edits[%d]'):format((edit.index or i) - 1), fault)
    end
    local is_insertion = edit.start_line == edit.end_line and edit.start_col == edit.end_col
    order[i] = { i = i, edit = edit, rank = is_insertion and 0 or 1 }
  end
  table.sort(order, function(a, b)
    local one, two = a.edit, b.edit
    if one.start_line ~= two.start_line then
      return one.start_line < two.start_line
    elseif one.start_col ~= two.start_col then
      return one.start_col < two.start_col
    elseif a.rank ~= b.rank then
      return a.rank < b.rank
    end
    return a.i < b.i
  end)
  local list, before = {}, nil
  for i, item in ipairs(order) do
    local edit = item.edit
    if
      before
      and (before.end_line > edit.start_line or before.end_line == edit.start_line and before.end_col > edit.start_col)
    then
      return nil, invalid(('edits[%d]'):format((edit.index or item.i) - 1), 'it overlaps another edit')
    end
    list[i], before = edit, edit
  end
  local tail = take_tail(list, count, line_of)
  local out = {}
  for i, edit in ipairs(list) do
    out[i] = {
      row = edit.start_line,
      col = edit.start_col,
      end_row = edit.end_line,
      end_col = edit.end_col,
      lines = split(edit.text),
    }
  end
  table.insert(out, tail)
  return joined(out, line_of)
end

--- Returns the lines after the replacements; `lines` is not modified.
---@param lines string[]
---@param list mcp-tools.Replacement[] ordered
---@return string[]
function M.applied(lines, list)
  local out, open, row, col = {}, '', 0, 0
  local function copy_to(to_row, to_col)
    while row < to_row do
      out[#out + 1] = open .. lines[row + 1]:sub(col + 1)
      open, row, col = '', row + 1, 0
    end
    open, col = open .. lines[row + 1]:sub(col + 1, to_col), to_col
  end
  for _, at in ipairs(list) do
    copy_to(at.row, at.col)
    open = open .. at.lines[1]
    for i = 2, #at.lines do
      out[#out + 1] = open
      open = at.lines[i]
    end
    row, col = at.end_row, at.end_col
  end
  copy_to(#lines - 1, #lines[#lines])
  out[#out + 1] = open
  return out
end

--- Returns the unified diff that edits of a text make.
---@param lines string[]
---@param edits mcp-tools.Edit[]
---@param opts mcp-tools.UnifiedOpts
---@param is_exact? boolean as for `ordered`
---@return string?
---@return mcp-tools.Error? err
function M.unified(lines, edits, opts, is_exact)
  local list, err = M.ordered(edits, #lines, function(row)
    return lines[row + 1]
  end, is_exact)
  if not list then
    return nil, err
  end
  return (text_diff.unified(lines, M.applied(lines, list), opts))
end

---@param byte integer?
local function is_inside_character(byte)
  return byte ~= nil and byte >= 0x80 and byte < 0xC0
end

--- Counts the equal bytes at the beginning and at the end of two lines, in whole characters.
---@param old string
---@param new string
---@return integer first
---@return integer last
local function same_edges(old, new)
  local max = math.min(#old, #new)
  local first = text_diff.same_start(old, new, max)
  while first > 0 and (is_inside_character(old:byte(first + 1)) or is_inside_character(new:byte(first + 1))) do
    first = first - 1
  end
  local last = text_diff.same_end(old, new, max - first)
  while last > 0 and is_inside_character(old:byte(#old - last + 1)) do
    last = last - 1
  end
  return first, last
end

---@param out mcp-tools.Replacement[]
---@param row integer
---@param col integer where `old` begins in its line
---@param old string
---@param new string
local function add_line(out, row, col, old, new)
  if old ~= new then
    local first, last = same_edges(old, new)
    out[#out + 1] = {
      row = row,
      col = col + first,
      end_row = row,
      end_col = col + #old - last,
      lines = { new:sub(first + 1, #new - last) },
    }
  end
end

--- Merges neighboring differences if there are too many.
---@param spans mcp-tools.LineSpan[]
---@return mcp-tools.LineSpan[]
local function merged(spans)
  local size = math.ceil(#spans / MAX_RANGES)
  if size <= 1 then
    return spans
  end
  local out = {}
  for i = 1, #spans, size do
    local first, last = spans[i], spans[math.min(i + size - 1, #spans)]
    out[#out + 1] = { first[1], last[1] + last[2] - first[1], first[3], last[3] + last[4] - first[3] }
  end
  return out
end

--- Splits a replacement into minimal ones, so that unchanged text keeps its marks.
---@param at mcp-tools.Replacement
---@param old string[] the replaced text
---@param spans? mcp-tools.LineSpan[] differences between the old and new lines, if already computed
---@return mcp-tools.Replacement[] ordered
function M.parts(at, old, spans)
  local new, out = at.lines, {}
  if #old == 1 and #new == 1 then
    add_line(out, at.row, at.col, old[1], new[1])
    return out
  end
  local function start_of(i)
    return at.row + i - 1, i == 1 and at.col or 0
  end
  local function end_of(i)
    local row, col = start_of(i)
    return row, col + #old[i]
  end
  local function add(row, col, end_row, end_col, lines)
    out[#out + 1] = { row = row, col = col, end_row = end_row, end_col = end_col, lines = lines }
  end
  for _, hunk in ipairs(merged(spans or text_diff.spans(old, new))) do
    local first, count, new_first, new_count = hunk[1], hunk[2], hunk[3], hunk[4]
    local lines = vim.list_slice(new, new_first, new_first + new_count - 1)
    if (count == 0 or new_count == 0) and first + count <= #old then
      local row, col = start_of(first)
      local end_row, end_col = start_of(first + count)
      table.insert(lines, '')
      add(row, col, end_row, end_col, lines)
    elseif count == 0 or new_count == 0 then -- at the end: with the line break before it
      local row, col = end_of(first - 1)
      local end_row, end_col = end_of(#old)
      table.insert(lines, 1, '')
      add(row, col, end_row, end_col, lines)
    elseif count == new_count and #out + count <= MAX_SINGLE then
      for i = 1, count do
        local row, col = start_of(first + i - 1)
        add_line(out, row, col, old[first + i - 1], lines[i])
      end
    else
      local row, col = start_of(first)
      local end_row, end_col = end_of(first + count - 1)
      add(row, col, end_row, end_col, lines)
    end
  end
  return out
end

return M
