--- Positions as clients count them, 1-based lines and columns in characters, and in the units of language servers.

local M = {}

local NEW = vim.fn.has('nvim-0.11') == 1

--- Returns the number of characters. NUL is replaced because Vim's functions do not accept it.
---@param text string
---@return integer
function M.characters(text)
  return vim.fn.strchars((text:gsub('%z', '\n')))
end

--- Truncates a text and appends `…`.
---@param text string
---@param max integer maximum number of characters
---@return string
function M.cut(text, max)
  local byte = #text > max and vim.fn.byteidx((text:gsub('%z', '\n')), max) or -1
  return byte >= 0 and byte < #text and text:sub(1, byte) .. '…' or text
end

---@diagnostic disable: param-type-mismatch -- the signatures of Neovim 0.10

---@alias mcp-tools.lsp.Encoding string 'utf-8', 'utf-16' or 'utf-32'

--- Number of bytes between two marks of a line.
local STEP = 1024

---@class mcp-tools.position.Marks beginnings of characters, about `STEP` bytes apart
---@field bytes integer[]
---@field units integer[] before each

--- What is kept between conversions of many positions, so that each long line is copied and scanned once.
---@class mcp-tools.position.Known
---@field marks table<string, table<mcp-tools.lsp.Encoding, mcp-tools.position.Marks>|false> by line
---@field line string? the last one
---@field at integer[] buffer, changedtick and row of it

---@return mcp-tools.position.Known
function M.known()
  return { marks = {}, at = {} }
end

--- Returns a line of a buffer.
---@param bufnr integer
---@param row integer from 0
---@param known? mcp-tools.position.Known
---@return string? line nil: the buffer is not loaded, or has no such row
function M.line(bufnr, row, known)
  if not vim.api.nvim_buf_is_loaded(bufnr) then
    return nil
  end
  local at = { bufnr, vim.api.nvim_buf_get_changedtick(bufnr), row }
  if known and vim.deep_equal(known.at, at) then
    return known.line
  end
  local line = vim.api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  if known then
    known.at, known.line = at, line
  end
  return line
end

---@param text string
---@param byte integer
---@param encoding mcp-tools.lsp.Encoding
---@return integer units
local function units_before(text, byte, encoding)
  if NEW then
    return vim.str_utfindex(text, encoding, byte, false)
  end
  local characters, units = vim.str_utfindex(text, byte)
  return encoding == 'utf-32' and characters or units
end

---@param text string
---@param units integer
---@param encoding mcp-tools.lsp.Encoding
---@return integer byte
local function byte_after(text, units, encoding)
  if NEW then
    return vim.str_byteindex(text, encoding, units, false)
  end
  local ok, byte = pcall(vim.str_byteindex, text, units, encoding == 'utf-16')
  return ok and byte or #text
end

--- Returns the marks of a line, so that it is scanned once for all of its positions.
---@param line string
---@param encoding mcp-tools.lsp.Encoding
---@param known? mcp-tools.position.Known
---@return mcp-tools.position.Marks? marks nil: one character is one byte
local function marks_of(line, encoding, known)
  local found = known and known.marks[line]
  if encoding == 'utf-8' or found == nil and not line:find('[\128-\255]') then
    found = false
  end
  if known and encoding ~= 'utf-8' and #line > STEP then
    found = found == nil and {} or found
    known.marks[line] = found
  end
  if found == false then
    return nil
  elseif found and found[encoding] then
    return found[encoding]
  end
  local marks = { bytes = { [0] = 0 }, units = { [0] = 0 } } ---@type mcp-tools.position.Marks
  for i = 1, found and math.floor((#line - 1) / STEP) or 0 do
    local before, byte = marks.bytes[i - 1], i * STEP
    byte = byte + vim.str_utf_start(line, byte + 1)
    marks.bytes[i] = byte
    marks.units[i] = marks.units[i - 1] + units_before(line:sub(before + 1, byte), byte - before, encoding)
  end
  if found then
    found[encoding] = marks
  end
  return marks
end

--- Returns the number of units before a byte.
---@param line string
---@param byte integer from 0
---@param encoding mcp-tools.lsp.Encoding
---@param known? mcp-tools.position.Known
---@return integer
function M.units(line, byte, encoding, known)
  byte = math.max(0, math.min(byte, #line))
  local marks = marks_of(line, encoding, known)
  if not marks then
    return byte
  end
  local i = math.min(math.floor(byte / STEP), #marks.bytes)
  local first, last = marks.bytes[i], marks.bytes[i + 2] or #line
  return marks.units[i] + units_before(line:sub(first + 1, last), byte - first, encoding)
end

--- Returns the byte at which a unit begins; the end of the line if it is shorter.
---@param line string
---@param units integer from 0
---@param encoding mcp-tools.lsp.Encoding
---@param known? mcp-tools.position.Known
---@return integer byte from 0
function M.byte(line, units, encoding, known)
  if units <= 0 then
    return 0
  end
  local marks = marks_of(line, encoding, known)
  if not marks then
    return math.min(units, #line)
  end
  local i, after = 0, #marks.units + 1
  while after - i > 1 do
    local middle = math.floor((i + after) / 2)
    if marks.units[middle] <= units then
      i = middle
    else
      after = middle
    end
  end
  local first = marks.bytes[i]
  return first + byte_after(line:sub(first + 1, marks.bytes[i + 1]), units - marks.units[i], encoding)
end

--- Returns whether a value of a server is a range.
---@param value any
---@return boolean
function M.is_range(value)
  local function is_position(place)
    if type(place) ~= 'table' then
      return false
    end
    local line, character = place.line, place.character
    return type(line) == 'number' and type(character) == 'number' and line % 1 == 0 and character % 1 == 0
  end
  return type(value) == 'table' and is_position(value.start) and is_position(value['end'])
end

--- Converts a column to the units of a server.
---@param line string
---@param column integer from 1, in characters
---@param encoding mcp-tools.lsp.Encoding
---@return integer character from 0
function M.to_server(line, column, encoding)
  return M.units(line, M.byte(line, column - 1, 'utf-32'), encoding)
end

--- Converts the units of a server to a column.
---@param line string? nil: the file could not be read
---@param character integer from 0
---@param encoding mcp-tools.lsp.Encoding
---@param known? mcp-tools.position.Known
---@return integer column from 1, in characters
function M.to_client(line, character, encoding, known)
  if not line then
    return character + 1
  end
  return M.units(line, M.byte(line, character, encoding, known), 'utf-32', known) + 1
end

--- Converts a byte to a column.
---@param bufnr integer
---@param row integer 0-based
---@param byte integer 0-based
---@param known? mcp-tools.position.Known
---@return integer column 1-based; in bytes if the buffer is not loaded
function M.column(bufnr, row, byte, known)
  local line = M.line(bufnr, row, known)
  return line and M.units(line, byte, 'utf-32', known) + 1 or byte + 1
end

return M
