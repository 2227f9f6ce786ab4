--- Documents of LSP clients: checks which files they may access, and converts positions in them.
---
--- A client uses the text on disk, in UTF-16 units. A server uses the text of the editor, which may have unsaved
--- changes, in its own encoding.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.position')
local read = require('mcp-tools.privacy.read')
local text_diff = require('mcp-tools.editor.text.diff')

local M = {}

--- Maximum size of a file whose text is read for positions, bytes.
local MAX_BYTES = 32 * 1024 * 1024
--- Encoding of clients.
local UTF16 = 'utf-16'

---@class mcp-tools.lsp.Document
---@field lines string[]? text in the editor; nil: positions are the same in both texts
---@field disk string[]? text on disk, if it differs
---@field spans mcp-tools.LineSpan[]? differences from the text on disk to that in the editor
---@field known mcp-tools.position.Known?
---@field same table<string, integer[]>? number of equal bytes at the beginning and at the end of changed lines

--- Returns a function that resolves a URI to a path, if clients may read the file.
---@param ctx mcp-tools.Ctx
---@return fun(uri: any): string?, mcp-tools.Error?
function M.checker(ctx)
  local readable = access.files(ctx.root)
  return function(uri)
    local path, doubtful
    if type(uri) == 'string' and uri:find('^[fF][iI][lL][eE]:') then
      path, doubtful = paths.from_uri(uri)
    end
    if not path or doubtful then
      return nil, errors.new('validation_error', 'uri: must be the URI of a file')
    end
    local resolved, why = readable(path)
    if not resolved then
      return nil, errors.new('access_denied', ('%s cannot be used here: it is %s'):format(uri, why))
    end
    return resolved
  end
end

---@param ctx mcp-tools.Ctx inside a coroutine
---@param path string resolved
---@param bufnr integer? its buffer
---@return string[]? lines nil: it cannot be read
local function lines_on_disk(ctx, path, bufnr)
  local bytes = read.await(ctx, path, MAX_BYTES)
  return bytes and file_text.lines_of((file_text.as_buffer(bytes, bufnr))) or nil
end

--- Returns a function that reads the data for converting positions in a file.
---@param ctx mcp-tools.Ctx inside a coroutine
---@return fun(path: string, encoding: mcp-tools.lsp.Encoding): mcp-tools.lsp.Document load takes a resolved path, and
---  the encoding of the server
function M.loader(ctx)
  local buffer_of = buffers.of_paths()
  return function(path, encoding)
    local bufnr = buffer_of(path)
    local is_loaded = bufnr and vim.api.nvim_buf_is_loaded(bufnr)
    local disk = is_loaded and vim.bo[bufnr].modified and lines_on_disk(ctx, path, bufnr) or nil
    if not disk and encoding == UTF16 then
      return {}
    elseif not is_loaded then
      return { lines = lines_on_disk(ctx, path) }
    end
    local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
    local spans = disk and ctx:await(function(done)
      text_diff.spans_async(disk, lines, done)
    end)
    return { lines = lines, disk = disk, spans = spans }
  end
end

--- Converts a row of one text to the row of the other.
---@param spans mcp-tools.LineSpan[]
---@param row integer from 0
---@param from integer index of the row in a span, 1 on disk or 3 in the editor
---@param to integer
---@return integer row
---@return 'changed'|'gone'|nil how
local function row_of(spans, row, from, to)
  local line, shift = row + 1, 0
  for _, span in ipairs(spans) do
    local first, count, other, other_count = span[from], span[from + 1], span[to], span[to + 1]
    if line < first then
      break
    elseif line < first + count then
      if other_count == 0 then
        return other - 1, 'gone'
      end
      return other + math.min(line - first, other_count - 1) - 1, 'changed'
    end
    shift = other + other_count - first - count
  end
  return row + shift
end

--- Converts a byte in a changed line: keeps the distance from the start, or from the end in the equal part there.
---@param old string
---@param new string
---@param byte integer
---@param first integer number of equal bytes at the beginning
---@param last integer number of equal bytes at the end
---@return integer
local function byte_of(old, new, byte, first, last)
  if byte > first and #old - byte <= last then
    return #new - (#old - byte)
  end
  return math.min(byte, #new)
end

---@class mcp-tools.lsp.Side one of the two texts
---@field lines string[]
---@field at integer index of its rows in a span
---@field encoding mcp-tools.lsp.Encoding

---@param document mcp-tools.lsp.Document
---@param place lsp.Position
---@param from mcp-tools.lsp.Side
---@param to mcp-tools.lsp.Side
---@return lsp.Position
---@return boolean gone the other text does not have the line
local function convert(document, place, from, to)
  local line = from.lines[place.line + 1]
  local row, how = row_of(document.spans or {}, place.line, from.at, to.at)
  local other = to.lines[row + 1]
  if how == 'gone' or not line or not other then
    return { line = row, character = how == 'gone' and 0 or place.character }, how == 'gone'
  end
  document.known, document.same = document.known or position.known(), document.same or {}
  local byte = position.byte(line, place.character, from.encoding, document.known)
  if how == 'changed' then
    local key = ('%d %d'):format(from.at, place.line)
    local same = document.same[key]
    if not same then
      local most = math.min(#line, #other)
      local first = text_diff.same_start(line, other, most)
      same = { first, text_diff.same_end(line, other, most - first) }
      document.same[key] = same
    end
    byte = byte_of(line, other, byte, same[1], same[2])
  end
  return { line = row, character = position.units(other, byte, to.encoding, document.known) }, false
end

--- Converts a position of a client for a server.
---@param document mcp-tools.lsp.Document
---@param place lsp.Position
---@param encoding mcp-tools.lsp.Encoding
---@return lsp.Position
---@return boolean gone the text of the editor does not have the line
function M.to_server(document, place, encoding)
  if not document.lines then
    return place, false
  end
  local disk = document.disk or document.lines --[[@as string[] ]]
  return convert(
    document,
    place,
    { lines = disk, at = 1, encoding = UTF16 },
    { lines = document.lines, at = 3, encoding = encoding }
  )
end

--- Converts a position of a server for a client. A position in an unsaved new line becomes the next one on disk.
---@param document mcp-tools.lsp.Document
---@param place lsp.Position
---@param encoding mcp-tools.lsp.Encoding
---@return lsp.Position
function M.to_client(document, place, encoding)
  if not document.lines then
    return place
  end
  local disk = document.disk or document.lines --[[@as string[] ]]
  return (
    convert(
      document,
      place,
      { lines = document.lines, at = 3, encoding = encoding },
      { lines = disk, at = 1, encoding = UTF16 }
    )
  )
end

return M
