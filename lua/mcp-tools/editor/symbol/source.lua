--- A file whose symbols are asked for: its buffer, as the disk has it, or one that is loaded where nobody sees it.
---
--- Receives: `path` and `bufnr` arguments, the ctx of a `run` tool.
--- Sends: the buffer that may be read, its symbols; or an error value.
--- Does not know about: what is done with them.

local access = require('mcp-tools.files.access')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local open = require('mcp-tools.editor.buffer.open')
local paths = require('mcp-tools.files.paths')
local symbol = require('mcp-tools.editor.symbol')
local target = require('mcp-tools.editor.lsp.target')

local M = {}

---@class mcp-tools.SymbolSource
---@field bufnr integer loaded
---@field shown string path relative to the root, or the number of the buffer
---@field path string? resolved
---@field new boolean it was loaded for this call
---@field state mcp-tools.DiskState
---@field file mcp-tools.SymbolFile

--- Loads a file, unless its buffer is there.
---@param ctx mcp-tools.Ctx in a coroutine
---@param path string resolved
---@return integer? bufnr
---@return mcp-tools.Error|boolean? err_or_new
local function load(ctx, path)
  local ok, why = target.may_read(ctx, path)
  if not ok then
    local text = '%s cannot be read here: it is %s'
    return nil, errors.new('access_denied', text:format(access.shown(path, ctx.root), why))
  end
  return ctx:await(function(done)
    open.load(path, function(bufnr, err, new)
      done(bufnr, not bufnr and err or new == true)
    end, ctx)
  end)
end

--- The buffer that arguments name; neither means the file that the person looks at.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args { path: string?, bufnr: integer? }
---@return mcp-tools.SymbolSource? source without symbols yet
---@return mcp-tools.Error? err
function M.open(ctx, args)
  local neither = args.path == nil and args.bufnr == nil
  local found, err = buffers.find({ path = args.path, bufnr = neither and 0 or args.bufnr })
  if not found then
    return nil, err
  elseif not found.bufnr and not found.path then
    return nil, errors.new('not_found', ('bufnr: buffer %d is not loaded and has no file'):format(args.bufnr))
  end
  local bufnr, new = found.bufnr, false
  if bufnr then
    err = target.refusal(ctx, bufnr)
  else
    local second
    bufnr, second = load(ctx, (paths.resolve(found.path)))
    new = second == true
    err = not bufnr and second --[[@as mcp-tools.Error]] or nil
  end
  if not bufnr or err then
    return nil, err
  end
  local state = ctx:await(function(done)
    disk.refresh(bufnr, done)
  end)
  if not vim.api.nvim_buf_is_loaded(bufnr) then
    return nil, errors.new('not_found', ('there is no buffer %d any more'):format(bufnr))
  end
  local name = vim.api.nvim_buf_get_name(bufnr)
  local source = {
    bufnr = bufnr,
    shown = name ~= '' and access.shown(name, ctx.root) or ('buffer %d'):format(bufnr),
    path = name ~= '' and vim.bo[bufnr].buftype == '' and (paths.resolve(name)) or nil,
    new = new,
    state = state,
  }
  return source
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
  source.file, err = symbol.await(ctx, source.bufnr, source.new and not (serverless and serverless[filetype]))
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
---@param source mcp-tools.SymbolSource
function M.drop(source)
  if source.new then
    open.drop(source.bufnr)
  end
end

return M
