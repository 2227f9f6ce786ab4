--- A file with its symbols: its buffer as the disk has it, or one that is loaded where nobody sees it.
---
--- Receives: `path` and `bufnr` arguments, the ctx of a `run` tool.
--- Sends: the buffer that may be read, its symbols; or an error value.
--- Does not know about: what is done with them.

local symbol = require('mcp-tools.editor.symbol')
local target = require('mcp-tools.editor.buffer.target')

local M = {}

---@class mcp-tools.SymbolSource: mcp-tools.Target
---@field bufnr integer
---@field file mcp-tools.SymbolFile

--- The buffer that arguments name; neither means the file that the person looks at.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args { path: string?, bufnr: integer? }
---@return mcp-tools.SymbolSource? source without symbols yet
---@return mcp-tools.Error? err
function M.open(ctx, args)
  local found, err = target.await(ctx, args, { load = true, current = true })
  return found, --[[@as mcp-tools.SymbolSource]]
    err
end

--- Filetypes that have been found to have no server, for calls that look at many files.
---@alias mcp-tools.Serverless table<string, true>

--- The buffer with its symbols.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args { path: string?, bufnr: integer? }
---@param serverless? mcp-tools.Serverless nobody waits for a server of these to start; it is added to
---@return mcp-tools.SymbolSource?
---@return mcp-tools.Error? err
function M.find(ctx, args, serverless)
  local source, err = M.open(ctx, args)
  if not source then
    return nil, err
  end
  local filetype = vim.bo[source.bufnr].filetype
  source.file, err = symbol.await(ctx, source.bufnr, {
    fresh = source.new and not (serverless and serverless[filetype]),
  })
  if serverless and source.file and source.file.by ~= 'server' then
    serverless[filetype] = true
  end
  if not source.file then
    return nil, err
  end
  return source
end

--- Lines of a buffer, for outlines.
---@param bufnr integer
---@return mcp-tools.LinesOf
function M.lines_of(bufnr)
  return function(first, last)
    return vim.api.nvim_buf_get_lines(bufnr, first - 1, last, false)
  end
end

--- What was loaded for a call alone goes with it.
M.drop = target.drop

return M
