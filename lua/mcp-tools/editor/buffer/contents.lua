--- Contents of files as the editor has them: of a buffer that is open, else of the disk, several at a time.
---
--- Receives: resolved paths that have been judged; the ctx of a `run` tool.
--- Sends: text, and the buffer that it is of.
--- Does not know about: what is looked for, who may read it.

local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local file_text = require('mcp-tools.files.text')
local read = require('mcp-tools.files.read')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')
local whole_text = require('mcp-tools.editor.buffer.whole_text')

local api = vim.api

local M = {}

--- Larger files were written by programs.
M.MAX_FILE = 4 * 1024 * 1024
--- Files that are read at a time.
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
local function of_buffer(ctx, bufnr, pause)
  if target.refusal(ctx, bufnr) then
    return nil
  end
  ctx:await(function(done)
    disk.refresh(bufnr, done)
  end)
  local text = whole_text.of(bufnr, pause)
  return text
    and {
      text = text,
      bufnr = bufnr,
      changedtick = api.nvim_buf_get_changedtick(bufnr),
      unsaved = vim.bo[bufnr].modified,
    }
end

--- Texts of at most `AT_ONCE` files. What is no text has none.
---@param ctx mcp-tools.Ctx in a coroutine
---@param list string[]
---@param of_path? fun(path: string): integer? of `buffers.of_paths`, where many lists follow each other
---@return table<string, mcp-tools.Text|false> texts by path; false: it is too large
function M.of(ctx, list, of_path)
  of_path = of_path or buffers.of_paths()
  local texts, on_disk, pause = {}, {}, time_slice.of(ctx)
  for _, path in ipairs(list) do
    local bufnr = of_path(path)
    if bufnr then
      texts[path] = of_buffer(ctx, bufnr, pause)
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

return M
