--- Search and replace: edits as models write them, made into edits by position: a text to find, or a range of lines.
---
--- Receives: lines of a text, a list of `{ search, replace }` and `{ start_line, end_line, replace }`.
--- Sends: edits for editor/edit/init.lua; or what does not fit, with the nearest places for text that is not there.
--- Does not know about: buffers, tools.

local errors = require('mcp-tools.errors')
local nearest = require('mcp-tools.editor.edit.nearest')
local substring = require('mcp-tools.util.substring')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Places that are told.
local MAX_PLACES = 10
--- Bytes of the text of each near place that are told.
local MAX_QUOTED = 600

---@class mcp-tools.SearchEdit
---@field search string?
---@field start_line integer? from 1
---@field end_line integer?
---@field replace string

---@param i integer
---@param code mcp-tools.ErrorCode
---@param text string
---@return mcp-tools.Error
local function fault(i, code, text)
  local field = ('edits[%d]'):format(i - 1)
  local message = ('%s: %s'):format(field, text)
  return errors.new(code, message, { { field = field, message = text } })
end

--- Where each line of a text begins, and the way from a byte to its line.
---@param lines string[]
local function rows_of(lines)
  local starts, at = {}, 1
  for i, line in ipairs(lines) do
    starts[i] = at
    at = at + #line + 1
  end
  return function(byte)
    local low, high = 1, #starts
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if starts[middle] <= byte then
        low = middle
      else
        high = middle - 1
      end
    end
    return low - 1, byte - starts[low]
  end
end

--- Where a text stands; line breaks count as those of the file.
---@param text string
---@param search string
---@return integer[] starts at most one more than is told
---@return string search
local function places(text, search)
  local found, from = {}, 1
  if search:find('\r\n', 1, true) and not text:find('\r\n', 1, true) then
    search = search:gsub('\r\n', '\n')
  end
  local find = substring.finder(search)
  while #found <= MAX_PLACES do
    local at = find(text, from)
    if not at then
      break
    end
    found[#found + 1] = at
    from = at + 1
  end
  return found, search
end

---@param lines string[]
---@param search string
---@param pause? fun()
---@return string
local function advice(lines, search, pause)
  local wanted = vim.split((search:gsub('\n$', '')), '\n', { plain = true })
  local parts = {}
  for _, near in ipairs(nearest.find(lines, wanted, pause)) do
    local quoted = table.concat(lines, '\n', near.start_line, near.end_line)
    local how = near.spaces and 'only white space differs' or ('%d %% alike'):format(near.likeness * 100)
    local head = ('lines %d-%d (%s):'):format(near.start_line, near.end_line, how)
    table.insert(parts, head .. '\n' .. utf8.cut((utf8.repair(quoted)), MAX_QUOTED))
  end
  if #parts == 0 then
    return 'nothing here looks like it; read the text again'
  end
  return 'the nearest are\n' .. table.concat(parts, '\n')
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
---@param alone boolean it is the only edit
---@return mcp-tools.Edit?
---@return string? fault
local function by_lines(lines, one, alone)
  local first, last = one.start_line, one.end_line or one.start_line
  if first > #lines + 1 or last > #lines then
    return nil, ('lines %d-%d are not in the text (%d lines)'):format(first, last, #lines)
  elseif last < first - 1 then
    return nil, 'end_line: must not be before start_line; one less inserts before it'
  end
  if alone and #lines == 1 and lines[1] == '' then
    first, last = 1, 1 -- the line that an empty text has in Neovim would stay beside the new ones
  end
  local text = one.replace
  if text ~= '' and text:sub(-1) ~= '\n' then
    text = text .. '\n'
  end
  return edit(first - 1, 0, last, 0, text)
end

--- Makes the edits.
---@param lines string[] at least one
---@param list mcp-tools.SearchEdit[]
---@param opts? { pause: fun()?, brief: boolean? } brief: without the nearest places
---@return mcp-tools.Edit[]?
---@return mcp-tools.Error? err
function M.edits(lines, list, opts)
  opts = opts or {}
  local pause = opts.pause or function() end
  local text, position, out = nil, nil, {}
  for i, one in ipairs(list) do
    if (one.search == nil) == (one.start_line == nil) then
      return nil, fault(i, 'validation_error', 'give search, or start_line and end_line, one of the two')
    elseif one.start_line then
      local made, problem = by_lines(lines, one, #list == 1)
      if not made then
        return nil, fault(i, 'validation_error', problem --[[@as string]])
      end
      out[i] = made
    else
      if not text then
        text, position = table.concat(lines, '\n') .. '\n', rows_of(lines)
        pause()
      end
      local found, search = places(text, one.search)
      if #found == 0 then
        local more = opts.brief and 'read the text again' or advice(lines, search, pause)
        return nil, fault(i, 'not_found', 'search: this text is not there; ' .. more)
      elseif #found > 1 then
        local rows = {}
        for k = 1, math.min(#found, MAX_PLACES) do
          rows[k] = position(found[k]) + 1
        end
        local many = #found > MAX_PLACES and ('more than %d'):format(MAX_PLACES) or tostring(#found)
        local where = ('search: this text is there %s times, in lines %s; take lines around it into search'):format(
          many,
          table.concat(rows, ', ')
        )
        return nil, fault(i, 'validation_error', where)
      end
      local row, col = position(found[1])
      local stop = found[1] + #search
      local end_row, end_col
      if stop > #text then
        end_row, end_col = #lines, 0
      else
        end_row, end_col = position(stop)
      end
      out[i] = edit(row, col, end_row, end_col, one.replace)
    end
  end
  return out
end

return M
