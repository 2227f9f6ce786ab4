--- Text search without a program for it: in the files of the folders that language servers work in.
---
--- Receives: a buffer, a text; the ctx of a `run` tool.
--- Sends: the lines that hold it, of files that may be read.
--- Does not know about: how files come to be known (outside.lua), what is done with the lines.

local access = require('mcp-tools.files.access')
local read = require('mcp-tools.files.read')
local time_slice = require('mcp-tools.util.time_slice')
local watched_files = require('mcp-tools.editor.lsp.watched_files')

local M = {}

--- A larger one is no source. Bytes.
local MAX_FILE = 4 * 1024 * 1024
--- Files that are searched, and how many at a time.
local MAX_SEARCHED, AT_ONCE = 10000, 32

--- Lines that hold a text, in files of the same kind as a buffer's that may be read, below the folders of its servers.
---@param ctx mcp-tools.Ctx in a coroutine
---@param bufnr integer
---@param text string
---@param max integer
---@return mcp-tools.Hit[] hits with whole paths
---@return boolean more
function M.find(ctx, bufnr, text, max)
  local extension = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(bufnr), ':e')
  local files, hits, pause, readable = {}, {}, time_slice.of(ctx), access.files(ctx.root)
  for _, path in ipairs(watched_files.files()) do
    if path:sub(-#extension - 1) == '.' .. extension and readable(path) then
      table.insert(files, path)
    end
    pause()
  end
  for first = 1, math.min(#files, MAX_SEARCHED), AT_ONCE do
    local last = math.min(first + AT_ONCE - 1, #files)
    local texts = ctx:await(function(done)
      local got, left = {}, last - first + 1
      for i = first, last do
        read.read(files[i], MAX_FILE, function(bytes)
          got[i], left = bytes or '', left - 1
          if left == 0 then
            done(got)
          end
        end)
      end
    end)
    for i = first, last do
      if texts[i]:find(text, 1, true) then
        for number, line in ipairs(vim.split(texts[i], '\n', { plain = true })) do
          if line:find(text, 1, true) then
            table.insert(hits, { path = files[i], line = number, text = line })
          end
        end
      end
      if #hits >= max then
        return hits, true
      end
    end
  end
  return hits, #files > MAX_SEARCHED
end

return M
