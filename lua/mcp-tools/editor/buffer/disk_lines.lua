--- The text of a file on the disk, as a buffer of it would have it.
---
--- Receives: a path that was judged.
--- Sends: text or lines, or an error value.
--- Does not know about: what they are compared with.

local ahead = require('mcp-tools.files.ahead')
local file_text = require('mcp-tools.files.text')
local open = require('mcp-tools.editor.buffer.open')
local read = require('mcp-tools.files.read')

local M = {}

--- A file's bytes as the text of its buffer, with a line break at the end.
---@param bytes string
---@param bufnr? integer the buffer of the file
---@return string text
---@return mcp-tools.TextEnds ends of the bytes
local function text_of(bytes, bufnr)
  local text, ends = file_text.as_buffer(bytes, bufnr)
  return ends.last and text or text .. '\n', ends
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
  return (text_of(bytes, bufnr and vim.api.nvim_buf_is_loaded(bufnr) and bufnr or nil))
end

--- Its lines for a question to the person, if they are known; else they are being read from now on.
---@param path string resolved
---@param bufnr? integer
---@param again? fun() called once more is known
---@param max_bytes? integer
---@return string[]? lines
---@return string? fault
---@return string? code 'ENOENT', or that of a file that is being read (files/ahead.lua)
---@return mcp-tools.TextEnds? ends of a file that is not open
function M.now(path, bufnr, again, max_bytes)
  local bytes, fault, code = ahead.get(path, again)
  if not bytes or #bytes > (max_bytes or math.huge) then
    return nil, fault or 'the file is too large', code
  end
  local text, ends = text_of(bytes, bufnr)
  return vim.split(text:sub(1, -2), '\n', { plain = true }), nil, nil, ends
end

return M
