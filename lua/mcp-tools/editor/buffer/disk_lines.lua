--- The text of a file on the disk, as a buffer of it would have it.
---
--- Receives: a path that was judged.
--- Sends: text or lines, or an error value.
--- Does not know about: what they are compared with.

local ahead = require('mcp-tools.files.ahead')
local open = require('mcp-tools.editor.buffer.open')
local read = require('mcp-tools.files.read')

local M = {}

--- Text with an encoding that Neovim converted, when it read it.
---@param bytes string
---@param bufnr integer?
---@return string
local function in_utf8(bytes, bufnr)
  local encoding = bufnr and vim.bo[bufnr].fileencoding or ''
  bytes = bytes:gsub('^\239\187\191', '')
  if encoding == '' or encoding == 'utf-8' then
    return bytes
  end
  local converted = vim.iconv(bytes, encoding, 'utf-8')
  return type(converted) == 'string' and converted or bytes
end

--- A file's bytes as the text of its buffer: line breaks as Neovim has them, one at the end.
---@param bytes string
---@param bufnr? integer the buffer of the file, whose encoding and form of line breaks count
---@return string
local function text_of(bytes, bufnr)
  local text = in_utf8(bytes, bufnr)
  local dos = bufnr and vim.bo[bufnr].fileformat == 'dos'
  if dos or not bufnr and text:match('^[^\n]*'):sub(-1) == '\r' then
    text = text:gsub('\r\n', '\n')
  end
  return text:sub(-1) == '\n' and text or text .. '\n'
end

--- Reads the text for a call. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@param bufnr? integer
---@return string? text every line ends with a line break; an empty file is one empty line, as in a buffer
---@return mcp-tools.Error? err
function M.await(ctx, path, bufnr)
  local bytes, err = ctx:await(function(done)
    read.read(path, open.MAX_BYTES, done)
  end)
  if not bytes then
    return nil, err
  end
  return text_of(bytes, bufnr and vim.api.nvim_buf_is_loaded(bufnr) and bufnr or nil)
end

--- Its lines for a question to the person, if they are known; else they are being read from now on.
---@param path string resolved
---@param bufnr? integer
---@param again? fun() called once more is known
---@return string[]? lines
---@return string? fault
---@return string? code 'ENOENT', or that of a file that is being read (files/ahead.lua)
function M.now(path, bufnr, again)
  local bytes, fault, code = ahead.get(path, again)
  if not bytes then
    return nil, fault, code
  end
  return vim.split(text_of(bytes, bufnr):sub(1, -2), '\n', { plain = true })
end

return M
