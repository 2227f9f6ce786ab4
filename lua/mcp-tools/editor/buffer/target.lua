--- Target of a tool: the buffer or file that a call's arguments name, checked when it is opened.
---
--- Since the call was approved, another buffer may have become current or a directory may have become a link, so access
--- is checked again.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local open = require('mcp-tools.editor.buffer.open')
local paths = require('mcp-tools.files.paths')

local M = {}

---@class mcp-tools.Target
---@field bufnr integer? loaded
---@field path string? resolved path of its file, if it has one
---@field shown string name for messages
---@field state mcp-tools.DiskState? nil: not loaded
---@field new boolean? whether it was loaded for this call

---@param what string
---@param why mcp-tools.Unreadable
local function denied(what, why)
  return errors.new('access_denied', ('%s cannot be used here: it is %s'):format(what, why)), why
end

--- Returns why this call may not use a buffer. Sensitive files are refused even if the user approved the call.
---@param ctx mcp-tools.Ctx
---@param bufnr integer valid
---@return mcp-tools.Error? err
---@return mcp-tools.Unreadable? why reason as a word
function M.refusal(ctx, bufnr)
  local readable, why = access.buffer(bufnr, ctx.root)
  if readable then
    return nil
  end
  local kind, name = access.buffer_kind(bufnr)
  if why == 'sensitive' or not ctx:covers(kind == 'other' and bufnr or (paths.resolve(name))) then
    return denied(buffers.shown(bufnr, ctx.root), why)
  end
end

--- Returns a check for many files: why this call may not use one, open or not.
---@param ctx mcp-tools.Ctx
---@return fun(path: string): mcp-tools.Error?, mcp-tools.Unreadable? refusal takes a resolved path
function M.path_refusals(ctx)
  local readable, of_path = access.files(ctx.root), buffers.of_paths()
  return function(path)
    local resolved, why = readable(path)
    if not resolved and (why == 'sensitive' or not ctx:covers(path)) then
      return denied(access.shown(path, ctx.root), why)
    end
    local bufnr = of_path(path)
    if bufnr then -- its buffer may have another name, which is sensitive
      return M.refusal(ctx, bufnr)
    end
  end
end

--- Returns why this call may not use a file, open or not.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@return mcp-tools.Error? err
---@return mcp-tools.Unreadable? why reason as a word
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
  local path = access.buffer_path(bufnr)
  disk.refresh(bufnr, function(state, unreadable)
    if unreadable then
      return cb(nil, unreadable)
    elseif not vim.api.nvim_buf_is_loaded(bufnr) then
      return cb(nil, buffers.gone(bufnr))
    end
    cb({
      bufnr = bufnr,
      path = path,
      shown = buffers.shown(bufnr, ctx.root),
      state = state,
      new = new,
    })
  end)
end

---@class mcp-tools.TargetOpts
---@field load boolean? a file that is not open is loaded into a hidden buffer; otherwise the target has only a path
---@field current boolean? without `path` and `bufnr`, the current buffer is meant

--- Finds what the arguments name and checks its file on disk. The callback runs on the main loop.
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

--- The same for coroutines (`run` handlers).
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

--- Unloads a buffer that was loaded for a call that failed, unless it is shown.
---@param target { bufnr: integer?, new: boolean? }?
function M.drop(target)
  if target and target.new then
    open.drop(target.bufnr)
  end
end

return M
