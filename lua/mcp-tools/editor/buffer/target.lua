--- Target of a tool: the buffer or file that a call's arguments name, judged as it is opened.
---
--- Another buffer may have become the current one, or a folder a link, since the call was decided on: so this looks
--- again.

local access = require('mcp-tools.privacy.access')
local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local open = require('mcp-tools.editor.buffer.open')
local paths = require('mcp-tools.files.paths')

local M = {}

---@class mcp-tools.Target
---@field bufnr integer? loaded
---@field path string? resolved path of its file, where it has one
---@field shown string how it is told
---@field state mcp-tools.DiskState? of the buffer
---@field new boolean? it was loaded for this call

---@param what string
---@param why string
local function denied(what, why)
  return errors.new('access_denied', ('%s cannot be used here: it is %s'):format(what, why)), why
end

--- Why a buffer is none that this call may use. What is sensitive is none, whatever the person allowed.
---@param ctx mcp-tools.Ctx
---@param bufnr integer valid
---@return mcp-tools.Error? err
---@return mcp-tools.Unreadable? why in short
function M.refusal(ctx, bufnr)
  local readable, why = access.buffer(bufnr, ctx.root)
  if readable then
    return nil
  end
  local kind, name = buffer_kind.kind(bufnr)
  if why == 'sensitive' or not ctx:covers(kind == 'other' and bufnr or (paths.resolve(name))) then
    return denied(buffers.shown(bufnr, ctx.root), why)
  end
end

--- Files, one after the other: why one, open or not, is none that this call may use.
---@param ctx mcp-tools.Ctx
---@return fun(path: string): mcp-tools.Error?, mcp-tools.Unreadable? refusal of a resolved path; and why in short
function M.path_refusals(ctx)
  local readable, of_path = access.files(ctx.root), buffers.of_paths()
  return function(path)
    local resolved, why = readable(path)
    if not resolved and (why == 'sensitive' or not ctx:covers(path)) then
      return denied(access.shown(path, ctx.root), why)
    end
    local bufnr = of_path(path)
    if bufnr then -- it may be opened by another name, which is a sensitive one
      return M.refusal(ctx, bufnr)
    end
  end
end

--- Why a file, open or not, is none that this call may use.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@return mcp-tools.Error? err
---@return mcp-tools.Unreadable? why in short
function M.path_refusal(ctx, path)
  return M.path_refusals(ctx)(path)
end

---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@param new boolean?
---@param cb fun(target: mcp-tools.Target?, err: mcp-tools.Error?)
local function with_buffer(ctx, bufnr, new, cb)
  open.use(bufnr, ctx)
  local err = M.refusal(ctx, bufnr)
  if err then
    M.drop({ bufnr = bufnr, new = new })
    return cb(nil, err)
  end
  disk.refresh(bufnr, function(state)
    if not vim.api.nvim_buf_is_loaded(bufnr) then
      return cb(nil, buffers.gone(bufnr))
    end
    local kind, name = buffer_kind.kind(bufnr)
    cb({
      bufnr = bufnr,
      path = kind == 'file' and (paths.resolve(name)) or nil,
      shown = buffers.shown(bufnr, ctx.root),
      state = state,
      new = new,
    })
  end)
end

---@class mcp-tools.TargetOpts
---@field load boolean? a file that is not open is loaded where nobody sees it; else the target has a path only
---@field current boolean? without `path` and `bufnr` the file that the person looks at is meant

--- Finds what the arguments name and looks at the disk. The callback runs on the main loop.
---@param ctx mcp-tools.Ctx
---@param args { path: string?, bufnr: integer? }
---@param opts mcp-tools.TargetOpts
---@param cb fun(target: mcp-tools.Target?, err: mcp-tools.Error?)
function M.find(ctx, args, opts, cb)
  local found, err = buffers.find(args, opts)
  if not found then
    return cb(nil, err)
  elseif found.bufnr then
    return with_buffer(ctx, found.bufnr, nil, cb)
  end
  local path = (paths.resolve(found.path))
  err = M.path_refusal(ctx, path)
  if err then
    return cb(nil, err)
  elseif not opts.load then
    return cb({ path = path, shown = access.shown(path, ctx.root) })
  end
  open.load(path, function(bufnr, load_err, new)
    if not bufnr then
      return cb(nil, load_err)
    end
    with_buffer(ctx, bufnr, new, cb)
  end, ctx)
end

--- The same for coroutines of `run` handlers.
---@param ctx mcp-tools.Ctx
---@param args { path: string?, bufnr: integer? }
---@param opts mcp-tools.TargetOpts
---@return mcp-tools.Target?
---@return mcp-tools.Error? err
function M.await(ctx, args, opts)
  return ctx:await(function(done)
    M.find(ctx, args, opts, done)
  end)
end

--- What is not shown to anybody and was loaded for a call that came to nothing is unloaded again.
---@param target { bufnr: integer?, new: boolean? }?
function M.drop(target)
  if target and target.new then
    open.drop(target.bufnr)
  end
end

return M
