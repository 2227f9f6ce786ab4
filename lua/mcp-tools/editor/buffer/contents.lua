--- Text of a buffer, of a file on disk as its buffer would hold it, or of several files as the editor has them; the
--- checksum of a file.

local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local file_text = require('mcp-tools.files.text')
local garbage = require('mcp-tools.util.garbage')
local open = require('mcp-tools.editor.buffer.open')
local read = require('mcp-tools.privacy.read')
local sha256 = require('mcp-tools.util.sha256')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')

local api = vim.api

local M = {}

--- Number of lines copied between two pauses.
local PIECE = 2000
--- Number of attempts while the text keeps changing; then it is copied without a pause.
local MAX_TRIES = 3

---@param bufnr integer
---@param ending string
---@param pause fun()
---@return string? text nil: the buffer has changed or is gone
local function in_pieces(bufnr, ending, pause)
  local tick, count, parts = api.nvim_buf_get_changedtick(bufnr), api.nvim_buf_line_count(bufnr), {}
  for first = 0, count - 1, PIECE do
    local lines = api.nvim_buf_get_lines(bufnr, first, math.min(first + PIECE, count), false)
    lines[#lines + 1] = '' -- the last line has an ending, too
    parts[#parts + 1] = table.concat(lines, ending)
    if first + PIECE < count then
      pause()
      if not api.nvim_buf_is_loaded(bufnr) or api.nvim_buf_get_changedtick(bufnr) ~= tick then
        return nil
      end
    end
  end
  return garbage.without(table.concat, parts)
end

--- Returns the text of a buffer, each line with its ending. The text is current: nothing runs between the last check
--- and the return.
---@param bufnr integer loaded
---@param pause fun() called between pieces of work
---@param ending? string line ending; default: "\n"
---@return string? text nil: the buffer is gone
function M.of_buffer(bufnr, pause, ending)
  ending = ending or '\n'
  for _ = 1, MAX_TRIES do
    if not api.nvim_buf_is_loaded(bufnr) then
      return nil
    end
    local text = in_pieces(bufnr, ending, pause)
    if text then
      return text
    end
  end
  return api.nvim_buf_is_loaded(bufnr) and in_pieces(bufnr, ending, function() end) or nil
end

--- Converts a file's bytes to the text of its buffer, with a line break at the end.
---@param bytes string
---@param bufnr? integer the buffer of the file
---@return string text
---@return mcp-tools.TextEnds ends of the bytes
local function with_last_break(bytes, bufnr)
  local text, ends = file_text.as_buffer(bytes, bufnr)
  return ends.last and text or text .. '\n', ends
end

--- Reads the text of a file for a call. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@param bufnr? integer
---@return string? text every line ends with a line break; an empty file is one empty line, as in a buffer
---@return mcp-tools.Error? err
function M.on_disk(ctx, path, bufnr)
  local bytes, err = ctx:await(function(done)
    read.read(path, open.MAX_BYTES, done)
  end)
  if not bytes then
    return nil, err
  end
  return (with_last_break(bytes, bufnr and api.nvim_buf_is_loaded(bufnr) and bufnr or nil))
end

--- Returns the lines of a file for a question to the user if they are cached; otherwise starts to read them.
---@param path string resolved
---@param bufnr? integer
---@param again? fun() called when the file has been read
---@param max_bytes? integer
---@return string[]? lines
---@return string? fault
---@return string? code 'ENOENT', or `READING` of privacy/read.lua
---@return mcp-tools.TextEnds? line endings of a file that is not open
function M.lines_on_disk(path, bufnr, again, max_bytes)
  local bytes, fault, code = read.cached(path, again)
  if not bytes or #bytes > (max_bytes or math.huge) then
    return nil, fault or 'the file is too large', code
  end
  local text, ends = with_last_break(bytes, bufnr)
  return vim.split(text:sub(1, -2), '\n', { plain = true }), nil, nil, ends
end

--- Maximum size of a searched file, in bytes. Larger text files are usually generated.
M.MAX_FILE = 4 * 1024 * 1024
--- Number of files read at a time.
M.AT_ONCE = 16

---@class mcp-tools.Text
---@field text string lines end with "\n"
---@field bufnr integer?
---@field changedtick integer?
---@field unsaved boolean

---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@param pause fun()
---@return mcp-tools.Text?
local function refreshed(ctx, bufnr, pause)
  if target.refusal(ctx, bufnr) then
    return nil
  end
  ctx:await(function(done)
    disk.refresh(bufnr, done)
  end)
  local text = M.of_buffer(bufnr, pause)
  return text
    and {
      text = text,
      bufnr = bufnr,
      changedtick = api.nvim_buf_get_changedtick(bufnr),
      unsaved = vim.bo[bufnr].modified,
    }
end

--- Returns the texts of at most `AT_ONCE` files. Binary and unreadable files have no entry.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param list string[]
---@param of_path? fun(path: string): integer? result of `buffers.of_paths`, to share it between lists
---@return table<string, mcp-tools.Text|false> texts by path; false: the file is too large
function M.of(ctx, list, of_path)
  of_path = of_path or buffers.of_paths()
  local texts, on_disk, pause = {}, {}, time_slice.of(ctx)
  for _, path in ipairs(list) do
    local bufnr = of_path(path)
    if bufnr then
      texts[path] = refreshed(ctx, bufnr, pause)
    else
      table.insert(on_disk, path)
    end
    pause()
  end
  local left = #on_disk
  if left == 0 then
    return texts
  end
  local read_bytes = {}
  ctx:await(function(done)
    for _, path in ipairs(on_disk) do
      read.read(path, M.MAX_FILE, function(bytes, err)
        if bytes and not file_text.is_binary(bytes) then
          read_bytes[path] = bytes
        elseif err and err.code == 'too_large' then
          texts[path] = false
        end
        left = left - 1
        if left == 0 then
          done()
        end
      end)
    end
  end)
  for path, bytes in pairs(read_bytes) do
    texts[path] = { text = file_text.as_buffer(bytes, nil, pause), unsaved = false }
    pause()
  end
  return texts
end

--- Maximum size of a file whose checksum is computed, in bytes; larger files take seconds.
M.MAX_SUMMED = 64 * 1024 * 1024
--- Number of bytes hashed between two pauses.
local CHUNK = 16 * 1024

--- Returns the SHA-256 of a file. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@return string? sum
---@return mcp-tools.Error|integer size or error
function M.checksum(ctx, path)
  local bytes, err = ctx:await(function(done)
    read.read(path, M.MAX_SUMMED, done)
  end)
  if not bytes then
    return nil, err
  end
  local sum, pause = sha256.new(), time_slice.of(ctx)
  for at = 1, #bytes, CHUNK do
    sum:add(bytes:sub(at, at + CHUNK - 1))
    pause()
  end
  return sum:finish(), #bytes
end

return M
