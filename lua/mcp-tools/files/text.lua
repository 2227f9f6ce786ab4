--- Text of files: bytes as Neovim would read them into a buffer, lists of lines, and how lines are written.

local strings = require('mcp-tools.util.strings')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Lines at a time, between two pauses.
local AT_ONCE = 2000
--- Bytes at the beginning of a file that show whether it is text.
local LOOK = 8000
--- Byte order marks, and the encodings that they stand for. The longer ones come first.
local MARKS = {
  { '\255\254%z%z', 'ucs-4le' },
  { '%z%z\254\255', 'ucs-4' },
  { '\239\187\191', 'utf-8' },
  { '\254\255', 'utf-16be' },
  { '\255\254', 'utf-16le' },
}

--- How the lines of a text are written.
---@class mcp-tools.TextEnds
---@field last boolean the last line ends with a line break
---@field crlf boolean line breaks are CR LF

--- The encoding that a byte order mark names.
---@param bytes string
---@return string?
local function marked(bytes)
  for _, mark in ipairs(MARKS) do
    if bytes:find('^' .. mark[1]) then
      return mark[2]
    end
  end
end

--- Is it something other than text?
---@param bytes string a file, or its beginning
---@return boolean
function M.is_binary(bytes)
  local encoding = marked(bytes)
  return (not encoding or encoding == 'utf-8') and bytes:sub(1, LOOK):find('%z') ~= nil
end

---@param bytes string
---@param encoding string
---@return string? text nil: it is not in this encoding
local function converted(bytes, encoding)
  local text = vim.iconv(bytes, encoding, 'utf-8')
  return type(text) == 'string' and text ~= '' and text or nil
end

--- Text that is not UTF-8, in the first of 'fileencodings' that it can be in.
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

--- The bytes of a file in UTF-8, without a byte order mark.
---@param bytes string
---@param encoding? string 'fileencoding' of the buffer that was read from the file; found in the bytes when left out
---@return string
function M.decode(bytes, encoding)
  local mark = marked(bytes)
  if mark and mark ~= 'utf-8' then
    encoding = mark
  end
  if encoding and encoding ~= '' and encoding ~= 'utf-8' then
    bytes = converted(bytes, encoding) or bytes
  elseif not mark then
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

--- The bytes of a file as the text of its buffer, with "\n" between lines. Line breaks are CR LF where all of them are.
---@param bytes string
---@param bufnr? integer the buffer of the file, which has been read with this encoding and these line breaks
---@param pause? fun() called between pieces of work
---@return string text
---@return mcp-tools.TextEnds ends
function M.as_buffer(bytes, bufnr, pause)
  local text = M.decode(bytes, bufnr and vim.bo[bufnr].fileencoding)
  local ends = ends_in(text)
  if bufnr then
    ends.crlf = vim.bo[bufnr].fileformat == 'dos'
  end
  return ends.crlf and strings.replace_all(text, '\r\n', '\n', pause) or text, ends
end

--- A text with "\n" between lines. Line breaks are CR LF where all of them are.
---@param text string
---@return string text
---@return mcp-tools.TextEnds ends
function M.with_lf(text)
  local ends = ends_in(text)
  return ends.crlf and (text:gsub('\r\n', '\n')) or text, ends
end

local function go_on() end

--- A text in lines.
---@param text string
---@param pause? fun() called between pieces of work
---@return string[] lines at least one
---@return mcp-tools.TextEnds ends
function M.lines_of(text, pause)
  pause = pause or go_on
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

--- Lines as one text.
---@param lines string[]
---@param ends mcp-tools.TextEnds
---@return string
function M.text_of(lines, ends)
  local line_break = ends.crlf and '\r\n' or '\n'
  return table.concat(lines, line_break) .. (ends.last and line_break or '')
end

--- What changes of the form of a text, in words.
---@param old mcp-tools.TextEnds
---@param new mcp-tools.TextEnds
---@return string? nil: nothing
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

--- How the lines of a buffer are written where 'fixendofline' adds nothing.
---@param bufnr integer
---@return mcp-tools.TextEnds ends
function M.kept_ends_of(bufnr)
  return { last = vim.bo[bufnr].endofline, crlf = vim.bo[bufnr].fileformat == 'dos' }
end

--- How the lines of a buffer are written by `:write`.
---@param bufnr integer
---@return mcp-tools.TextEnds
function M.ends_of(bufnr)
  local options = vim.bo[bufnr]
  return { last = options.endofline or options.fixendofline, crlf = options.fileformat == 'dos' }
end

return M
