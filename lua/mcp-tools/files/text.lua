--- Text of files: decodes bytes as Neovim would read them into a buffer, splits lines, and keeps line endings.

local strings = require('mcp-tools.util.strings')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Number of lines processed between two pauses.
local AT_ONCE = 2000
--- Number of bytes at the beginning of a file that are searched for NUL.
local SNIFF = 8000
--- Byte order marks and their encodings, longer marks first.
local MARKS = {
  { '\255\254%z%z', 'ucs-4le' },
  { '%z%z\254\255', 'ucs-4' },
  { '\239\187\191', 'utf-8' },
  { '\254\255', 'utf-16be' },
  { '\255\254', 'utf-16le' },
}

--- Line endings of a text.
---@class mcp-tools.TextEnds
---@field last boolean whether the last line ends with a line break
---@field crlf boolean whether line breaks are CR LF

--- Returns the encoding of the byte order mark.
---@param bytes string
---@return string?
local function marked(bytes)
  for _, mark in ipairs(MARKS) do
    if bytes:find('^' .. mark[1]) then
      return mark[2]
    end
  end
end

--- Returns whether bytes are not text.
---@param bytes string a file, or its beginning
---@return boolean
function M.is_binary(bytes)
  local encoding = marked(bytes)
  return (not encoding or encoding == 'utf-8') and bytes:sub(1, SNIFF):find('%z') ~= nil
end

---@param bytes string
---@param encoding string
---@return string? text nil: invalid in this encoding
local function converted(bytes, encoding)
  local text = vim.iconv(bytes, encoding, 'utf-8')
  return type(text) == 'string' and text ~= '' and text or nil
end

--- Converts text that is not UTF-8 from the first of 'fileencodings' in which it is valid.
---@param bytes string
---@return string
local function in_utf8(bytes)
  if not utf8.invalid_at(bytes) then
    return bytes
  end
  for encoding in vim.gsplit(vim.go.fileencodings, ',', { trimempty = true }) do
    local is_other = not encoding:find('^ucs%-bom') and not encoding:find('^utf%-?8') and encoding ~= 'default'
    local text = is_other and converted(bytes, encoding)
    if text and vim.iconv(text, 'utf-8', encoding) == bytes then
      return text
    end
  end
  return bytes
end

--- Converts the bytes of a file to UTF-8 without a byte order mark.
---@param bytes string
---@param encoding? string 'fileencoding' of the file's buffer; default: detected
---@return string
function M.decode(bytes, encoding)
  local mark = marked(bytes)
  if mark and mark ~= 'utf-8' then
    encoding = mark
  end
  if encoding and encoding ~= '' and encoding ~= 'utf-8' then
    bytes = converted(bytes, encoding) or bytes
  elseif not mark and encoding ~= 'utf-8' then
    bytes = in_utf8(bytes)
  end
  return (bytes:gsub('^\239\187\191', ''))
end

---@param text string
---@return mcp-tools.TextEnds
local function ends_in(text)
  local has_break = text:find('\n', 1, true)
  return {
    last = text:byte(-1) == 10,
    crlf = has_break ~= nil and has_break > 1 and not text:find('[^\r]\n'),
  }
end

--- Converts the bytes of a file to the text of its buffer with "\n" line breaks; CR LF is recognized if all are CR LF.
---@param bytes string
---@param bufnr? integer loaded buffer of the file, whose encoding and line breaks are used
---@param pause? fun() called between pieces of work
---@return string text
---@return mcp-tools.TextEnds ends of the bytes
function M.as_buffer(bytes, bufnr, pause)
  local text = M.decode(bytes, bufnr and vim.bo[bufnr].fileencoding)
  local format = bufnr and vim.bo[bufnr].fileformat
  text = format == 'mac' and text:gsub('\r', '\n') or text
  local ends = ends_in(text)
  local has_crlf = ends.crlf
  if bufnr then
    has_crlf = format == 'dos'
  end
  return has_crlf and strings.replace_all(text, '\r\n', '\n', pause) or text, ends
end

--- Converts a text to "\n" line breaks if all are CR LF.
---@param text string
---@return string text
---@return mcp-tools.TextEnds ends
function M.with_lf(text)
  local ends = ends_in(text)
  return ends.crlf and (text:gsub('\r\n', '\n')) or text, ends
end

local function no_pause() end

--- Splits a text into lines.
---@param text string
---@param pause? fun() called between pieces of work
---@return string[] lines at least one
---@return mcp-tools.TextEnds ends
function M.lines_of(text, pause)
  pause = pause or no_pause
  local ends = { last = text:byte(-1) == 10, crlf = false }
  local lines, count, at = {}, 0, 1
  local stop = text:find('\n', 1, true)
  while stop and stop < #text do
    count = count + 1
    lines[count] = text:sub(at, stop - 1)
    if count % AT_ONCE == 0 then
      pause()
    end
    at = stop + 1
    stop = text:find('\n', at, true)
  end
  lines[count + 1] = text:sub(at, ends.last and -2 or -1)
  count = ends.last and count + 1 or count
  for i = 1, count do
    if lines[i]:byte(-1) ~= 13 then
      return lines, ends
    end
  end
  ends.crlf = count > 0
  for i = 1, count do
    lines[i] = lines[i]:sub(1, -2)
    if i % AT_ONCE == 0 then
      pause()
    end
  end
  return lines, ends
end

--- Joins lines to a text.
---@param lines string[]
---@param ends mcp-tools.TextEnds
---@return string
function M.text_of(lines, ends)
  local line_break = ends.crlf and '\r\n' or '\n'
  return table.concat(lines, line_break) .. (ends.last and line_break or '')
end

--- Describes a change of line endings.
---@param old mcp-tools.TextEnds
---@param new mcp-tools.TextEnds
---@return string? nil: no change
function M.ends_change(old, new)
  local parts = {}
  if old.crlf ~= new.crlf then
    table.insert(parts, 'line breaks become ' .. (new.crlf and 'CRLF' or 'LF'))
  end
  if old.last ~= new.last then
    table.insert(parts, new.last and 'a line break is added at the end' or 'the line break at the end is removed')
  end
  return #parts > 0 and table.concat(parts, ', ') or nil
end

--- Returns the line endings of a buffer without the effect of 'fixendofline'.
---@param bufnr integer
---@return mcp-tools.TextEnds ends
function M.kept_ends_of(bufnr)
  return { last = vim.bo[bufnr].endofline, crlf = vim.bo[bufnr].fileformat == 'dos' }
end

--- Returns the line endings that `:write` produces.
---@param bufnr integer
---@return mcp-tools.TextEnds
function M.ends_of(bufnr)
  local options = vim.bo[bufnr]
  return { last = options.endofline or options.fixendofline, crlf = options.fileformat == 'dos' }
end

return M
