--- Converts edits as models write them (a text to find or a range of lines, and its replacement) to positions.

local errors = require('mcp-tools.errors')
local sort = require('mcp-tools.util.sort')
local substring = require('mcp-tools.util.substring')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum number of matches reported, and of those replaced by `replace_all`.
local MAX_PLACES, MAX_REPLACED = 10, 10000
--- Maximum number of bytes quoted from each similar place.
local MAX_QUOTED = 600
--- Maximum number of similar places reported, and of candidates compared line by line, best first.
local MAX_NEAR, MAX_TRIED = 3, 40
--- Maximum number of searched lines compared, and of bytes of each line.
local MAX_WANTED, MAX_LINE = 60, 200
--- Minimum similarity of a similar place.
local MIN_SIMILARITY = 0.5
--- Number of lines, and of bytes of a long line, searched between two pauses.
local AT_ONCE, PIECE = 5000, 256 * 1024
--- Number of bytes times searches that takes a few milliseconds. A line costs as much as `LINE_COST` bytes.
local QUICK, LINE_COST = 64 * 1024 * 1024, 64

---@class mcp-tools.SearchEdit
---@field old_text string?
---@field start_line integer? 1-based
---@field end_line integer?
---@field new_text string
---@field replace_all boolean?
---@field index integer? its position in the call, for errors; default: in the list

---@param i integer
---@param code mcp-tools.ErrorCode
---@param text string
---@return mcp-tools.Error
local function fault(i, code, text)
  local field = ('edits[%d]'):format(i - 1)
  local message = ('%s: %s'):format(field, text)
  return errors.new(code, message, { { field = field, message = text } })
end

--- A range in a list of lines: 0-based, columns in bytes, end exclusive.
---@class mcp-tools.SearchPlace
---@field row integer
---@field col integer
---@field end_row integer
---@field end_col integer

---@alias mcp-tools.FoundPlace fun(row: integer, col: integer, end_row: integer, end_col: integer): boolean? is_enough

--- Finds a text without line breaks. Long lines are searched in pieces.
---@param lines string[]
---@param search string
---@param found mcp-tools.FoundPlace
---@param pause fun()
local function within_lines(lines, search, found, pause)
  local find = substring.finder(search)
  for row, line in ipairs(lines) do
    for first = 1, #line - #search + 1, PIECE do
      local is_long = #line > PIECE
      local piece = is_long and line:sub(first, first + PIECE + #search - 2) or line
      local at = find(piece, 1)
      while at do
        local col = first + at - 2
        if found(row - 1, col, row - 1, col + #search) then
          return
        end
        at = find(piece, at + 1)
      end
      if is_long then
        pause()
      end
    end
    if row % AT_ONCE == 0 then
      pause()
    end
  end
end

--- Returns the failure function of Knuth, Morris and Pratt for a list of lines.
---@param list string[]
---@return integer[]
local function borders_of(list)
  local borders, length = { 0 }, 0
  for i = 2, #list do
    while length > 0 and list[length + 1] ~= list[i] do
      length = borders[length]
    end
    length = list[length + 1] == list[i] and length + 1 or 0
    borders[i] = length
  end
  return borders
end

--- Finds a text of several lines: the end of one, whole lines, the start of one. Linear in the number of lines, since
--- Lua compares interned strings by pointer.
---@param lines string[]
---@param parts string[] at least two
---@param found mcp-tools.FoundPlace
---@param pause fun()
local function across_lines(lines, parts, found, pause)
  local head, tail, whole = parts[1], parts[#parts], vim.list_slice(parts, 2, #parts - 1)
  local borders, matched, count = borders_of(whole), 0, #lines
  -- `row` is the last whole line or, without one, the line of the head.
  for row = 1, count do
    if #whole > 0 then
      local line = lines[row]
      while matched > 0 and whole[matched + 1] ~= line do
        matched = borders[matched]
      end
      matched = whole[matched + 1] == line and matched + 1 or 0
    end
    if matched == #whole then
      local first, after = lines[row - #whole], lines[row + 1]
      local col = first and #first - #head
      local is_there = col
        and col >= 0
        and (head == '' or first:find(head, col + 1, true) ~= nil)
        and (tail == '' or after ~= nil and after:sub(1, #tail) == tail)
      if is_there and found(row - #whole - 1, col, row, #tail) then
        return
      end
      matched = #whole > 0 and borders[matched] or 0
    end
    if row % AT_ONCE == 0 then
      pause()
    end
  end
end

--- Finds the occurrences of a text.
---@param lines string[]
---@param search string
---@param max integer
---@param pause fun()
---@return mcp-tools.SearchPlace[] places one more than `max` if there are more
local function places(lines, search, max, pause)
  local list = {}
  local function found(row, col, end_row, end_col)
    list[#list + 1] = { row = row, col = col, end_row = end_row, end_col = end_col }
    return #list > max
  end
  local parts = vim.split(search, '\n', { plain = true })
  if #parts == 1 then
    within_lines(lines, search, found, pause)
  else
    across_lines(lines, parts, found, pause)
  end
  return list
end

--- Returns whether a line ends with CR, as in files with mixed line breaks.
---@param lines string[]
---@return boolean
local function has_cr(lines)
  for _, line in ipairs(lines) do
    if line:byte(-1) == 13 then
      return true
    end
  end
  return false
end

--- Returns whether converting the edits takes only milliseconds, so that no pause is needed.
---@param lines string[]
---@param list mcp-tools.SearchEdit[]
---@return boolean
function M.is_quick(lines, list)
  local bytes, searches = 0, 0
  for _, line in ipairs(lines) do
    bytes = bytes + #line + LINE_COST
  end
  for _, one in ipairs(list) do
    searches = searches + (one.old_text and 1 or 0)
  end
  return bytes * searches <= QUICK
end

---@param line string
---@return table<integer, integer> pairs number of occurrences of each pair of bytes
---@return integer total
local function pairs_of(line)
  local counts, before = {}, line:byte(1)
  local last = math.min(#line, MAX_LINE)
  for i = 2, last do
    local byte = line:byte(i)
    local pair = before * 256 + byte
    counts[pair], before = (counts[pair] or 0) + 1, byte
  end
  return counts, math.max(last - 1, 0)
end

---@class mcp-tools.WantedLine
---@field text string without surrounding white space
---@field counts table<integer, integer>
---@field total integer

--- Returns the similarity of two lines: the share of byte pairs that they have in common.
---@param wanted mcp-tools.WantedLine
---@param text string
---@return number similarity from 0 to 1
local function similarity_of(wanted, text)
  if wanted.text == text then
    return 1
  end
  local others, total = pairs_of(text)
  local shared = 0
  for pair, count in pairs(others) do
    shared = shared + math.min(count, wanted.counts[pair] or 0)
  end
  return total + wanted.total > 0 and 2 * shared / (wanted.total + total) or 0
end

---@class mcp-tools.Nearest
---@field first integer
---@field last integer
---@field similarity number from 0 to 1
---@field spaces boolean only white space differs

---@param lines string[]
---@param wanted mcp-tools.WantedLine[]
---@param first integer
---@return mcp-tools.Nearest
local function compare(lines, wanted, first)
  local sum, same = 0, true
  for i, one in ipairs(wanted) do
    local text = trim(lines[first + i - 1] or '')
    sum = sum + similarity_of(one, text)
    same = same and (text == one.text or text:gsub('%s+', '') == one.text:gsub('%s+', ''))
  end
  return { first = first, last = math.min(first + #wanted - 1, #lines), similarity = sum / #wanted, spaces = same }
end

--- Finds the places most similar to lines that do not occur. The longest of these lines selects the candidates.
---@param lines string[]
---@param search string[]
---@param pause fun()
---@return mcp-tools.Nearest[] best first
local function nearest(lines, search, pause)
  local wanted, anchor = {}, 1
  for i = 1, math.min(#search, MAX_WANTED) do
    local text = trim(search[i])
    local counts, total = pairs_of(text)
    wanted[i] = { text = text, counts = counts, total = total }
    anchor = #text > #wanted[anchor].text and i or anchor
  end
  local function best(list, max)
    return vim.list_slice(
      sort(list, function(a, b)
        return a.similarity > b.similarity
      end, pause),
      1,
      max
    )
  end
  local candidates, found = {}, {}
  for row, line in ipairs(lines) do
    local similarity = row >= anchor and similarity_of(wanted[anchor], trim(line)) or 0
    if similarity >= MIN_SIMILARITY then
      table.insert(candidates, { row = row, similarity = similarity })
    end
    if row % 50 == 0 then
      pause()
    end
  end
  for _, one in ipairs(best(candidates, MAX_TRIED)) do
    local place = compare(lines, wanted, one.row - anchor + 1)
    if place.similarity >= MIN_SIMILARITY then
      table.insert(found, place)
    end
    pause()
  end
  return best(found, MAX_NEAR)
end

--- Returns what an error about a text that was not found says in addition: the most similar places.
---@param lines string[]
---@param search string
---@param pause fun()
---@return string
local function advice(lines, search, pause)
  local wanted = vim.split((search:gsub('\n$', '')), '\n', { plain = true })
  local parts = {}
  for _, near in ipairs(nearest(lines, wanted, pause)) do
    local quoted = table.concat(lines, '\n', near.first, near.last)
    local how = near.spaces and 'only white space differs' or ('%d %% similar'):format(near.similarity * 100)
    local head = ('lines %d-%d (%s):'):format(near.first, near.last, how)
    table.insert(parts, head .. '\n' .. utf8.cut((utf8.repair(quoted)), MAX_QUOTED))
  end
  if #parts == 0 then
    return 'nothing similar was found; read the text again'
  end
  return 'the most similar are\n' .. table.concat(parts, '\n')
end

---@param row integer
---@param col integer
---@param end_row integer
---@param end_col integer
---@param text string
---@return mcp-tools.Edit
local function edit(row, col, end_row, end_col, text)
  return { start_line = row, start_col = col, end_line = end_row, end_col = end_col, text = text }
end

---@param lines string[]
---@param one mcp-tools.SearchEdit
---@param alone boolean there is no other edit
---@return mcp-tools.Edit?
---@return string? fault
local function by_lines(lines, one, alone)
  local first, last = one.start_line, one.end_line or one.start_line
  if first > #lines + 1 or last > #lines then
    return nil, ('lines %d-%d are not in the text (%d lines)'):format(first, last, #lines)
  elseif last < first - 1 then
    return nil, 'end_line: must be at least start_line - 1, which inserts before start_line'
  end
  if alone and #lines == 1 and lines[1] == '' then
    first, last = 1, 1 -- replace the one line of an empty buffer
  end
  local text = one.new_text
  if text ~= '' and text:sub(-1) ~= '\n' then
    text = text .. '\n'
  end
  return edit(first - 1, 0, last, 0, text)
end

--- Returns the places of a text that edits replace; places that overlap an earlier one are left out.
---@param found mcp-tools.SearchPlace[]
---@return mcp-tools.SearchPlace[]
local function without_overlaps(found)
  local list, row, col = {}, 0, 0
  for _, at in ipairs(found) do
    if at.row > row or at.row == row and at.col >= col then
      table.insert(list, at)
      row, col = at.end_row, at.end_col
    end
  end
  return list
end

--- Returns the error text for a text that occurs several times.
---@param found mcp-tools.SearchPlace[]
---@return string
local function repeated(found)
  local rows = {}
  for k = 1, math.min(#found, MAX_PLACES) do
    rows[k] = found[k].row + 1
  end
  local many = #found > MAX_PLACES and ('more than %d'):format(MAX_PLACES) or tostring(#found)
  local text = 'old_text: this text occurs %s times, in lines %s; add surrounding lines, or replace_all'
  return text:format(many, table.concat(rows, ', '))
end

--- Converts edits to positions.
---@param lines string[] at least one
---@param list mcp-tools.SearchEdit[]
---@param opts? { pause: fun()?, brief: boolean? } brief: leaves out similar places in errors
---@return mcp-tools.Edit[]?
---@return mcp-tools.Error? err
function M.edits(lines, list, opts)
  opts = opts or {}
  local pause, out, is_mixed = opts.pause or function() end, {}, nil
  for k, one in ipairs(list) do
    local i = one.index or k
    if (one.old_text == nil) == (one.start_line == nil) then
      return nil, fault(i, 'validation_error', 'give either old_text, or start_line and end_line')
    elseif one.start_line then
      local made, problem = by_lines(lines, one, #list == 1)
      if not made then
        return nil, fault(i, 'validation_error', problem --[[@as string]])
      end
      made.index = i
      table.insert(out, made)
    else
      local wanted = one.old_text
      if wanted:find('\r\n', 1, true) then
        if is_mixed == nil then
          is_mixed = has_cr(lines)
        end
        wanted = is_mixed and wanted or wanted:gsub('\r\n', '\n')
      end
      local found = places(lines, wanted, one.replace_all and MAX_REPLACED or MAX_PLACES, pause)
      if #found == 0 then
        local more = opts.brief and 'read the text again' or advice(lines, wanted, pause)
        return nil, fault(i, 'not_found', 'old_text: this text was not found; ' .. more)
      elseif #found > 1 and not one.replace_all then
        return nil, fault(i, 'validation_error', repeated(found))
      elseif #found > MAX_REPLACED then
        return nil, fault(i, 'validation_error', ('replace_all: more than %d places'):format(MAX_REPLACED))
      end
      for _, at in ipairs(without_overlaps(found)) do
        local made = edit(at.row, at.col, at.end_row, at.end_col, one.new_text)
        made.index = i
        table.insert(out, made)
      end
    end
  end
  return out
end

return M
