--- Reads texts: of a buffer, of a file on disk with the lines that its buffer would have, and of several files with the
--- unsaved changes of their buffers. Computes the checksum of a file.

local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local file_text = require('mcp-tools.files.text')
local garbage = require('mcp-tools.util.garbage')
local open = require('mcp-tools.editor.buffer.open')
local read = require('mcp-tools.privacy.read')
local sha256 = require('mcp-tools.util.sha256')
local strings = require('mcp-tools.util.strings')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')

local api = vim.api

local M = {}

--- Number of lines copied between two pauses.
local PIECE = 2000
--- Number of attempts while the text keeps changing; then it is copied without a pause.
local MAX_TRIES = 3

--- Returns the lines of a buffer. They are current: nothing runs between the last check and the return.
---@param bufnr integer
---@param pause fun() called between pieces of work
---@return string[]? lines nil: the buffer is gone
function M.lines(bufnr, pause)
  local lines, tick, tries = {}, nil, 0
  while api.nvim_buf_is_loaded(bufnr) do
    if tick ~= api.nvim_buf_get_changedtick(bufnr) then
      lines, tick, tries = {}, api.nvim_buf_get_changedtick(bufnr), tries + 1
    end
    local stop = tries > MAX_TRIES and -1 or #lines + PIECE
    vim.list_extend(lines, garbage.without(api.nvim_buf_get_lines, bufnr, #lines, stop, false))
    if #lines == api.nvim_buf_line_count(bufnr) then
      return lines
    end
    pause()
  end
end

--- Returns the text of a buffer, each line with its ending.
---@param bufnr integer
---@param pause fun() called between pieces of work
---@param ending? string line ending; default: "\n"
---@return string? text nil: the buffer is gone
function M.of_buffer(bufnr, pause, ending)
  local lines = M.lines(bufnr, pause)
  if lines then
    lines[#lines + 1] = '' -- the last line has an ending, too
    return garbage.without(table.concat, lines, ending or '\n')
  end
end

--- Splits a file's bytes into the lines of its buffer; an empty file is one empty line.
---@param bytes string
---@param bufnr? integer the buffer of the file
---@param pause? fun() called between pieces of work
---@return string[]
---@return mcp-tools.TextEnds ends of the bytes
local function split(bytes, bufnr, pause)
  local text, ends = file_text.as_buffer(bytes, bufnr, pause)
  local lines = {}
  for line in strings.each_ended(ends.last and text or text .. '\n', '\n') do
    lines[#lines + 1] = line
    if pause then
      pause()
    end
  end
  return lines, ends
end

--- Reads the lines of a file for a call. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@param bufnr? integer
---@return string[]? lines
---@return mcp-tools.Error? err
function M.on_disk(ctx, path, bufnr)
  local bytes, err = read.await(ctx, path, open.MAX_BYTES)
  if not bytes then
    return nil, err
  end
  return (split(bytes, bufnr and api.nvim_buf_is_loaded(bufnr) and bufnr or nil, time_slice.of(ctx)))
end

--- Returns the lines of a file for a question to the user if they are cached; otherwise starts to read them.
---@param path string resolved
---@param bufnr? integer
---@param again? fun() called when the file has been read
---@return string[]? lines
---@return string? fault
---@return string? code 'ENOENT', or `READING` of privacy/read.lua
---@return mcp-tools.TextEnds? line endings of a file that is not open
function M.lines_on_disk(path, bufnr, again)
  local bytes, fault, code = read.cached(path, again)
  if not bytes then
    return nil, fault, code
  end
  local lines, ends = split(bytes, bufnr)
  return lines, nil, nil, ends
end

--- Maximum size of a searched file, in bytes. Larger text files are usually generated.
local MAX_FILE = 4 * 1024 * 1024
--- Number of files read at a time.
M.AT_ONCE = 16

---@class mcp-tools.Text
---@field text string lines end with "\n"
---@field bufnr integer?
---@field changedtick integer?
---@field unsaved boolean

--- Returns the text of a buffer after comparing it with its file.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@param pause fun()
---@return mcp-tools.Text? text nil: the call may not use the buffer, or it cannot be read
local function usable_text(ctx, bufnr, pause)
  if target.refusal(ctx, bufnr) then
    return nil
  end
  local _, err = disk.await(ctx, bufnr)
  local text = not err and M.of_buffer(bufnr, pause) or nil
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
      texts[path] = usable_text(ctx, bufnr, pause)
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
      read.read(path, MAX_FILE, function(bytes, err)
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
local MAX_SUMMED = 64 * 1024 * 1024
--- Number of bytes hashed between two pauses.
local CHUNK = 16 * 1024

--- Returns the SHA-256 of a file. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@return string? sum
---@return mcp-tools.Error|integer size or error
function M.checksum(ctx, path)
  local bytes, err = read.await(ctx, path, MAX_SUMMED)
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
