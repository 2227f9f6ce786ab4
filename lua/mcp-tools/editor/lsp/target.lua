--- The buffer that a question to language servers is about, with the servers that can answer it.
---
--- Receives: `path` and `bufnr` arguments; neither means the file that the person looks at.
--- Sends: a loaded buffer that may be read, its clients; or an error value that says what to do.
--- Does not know about: what is asked, whether the servers are ready.

local access = require('mcp-tools.files.access')
local buffer = require('mcp-tools.files.buffer')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local heard = require('mcp-tools.editor.lsp.heard')
local open = require('mcp-tools.editor.buffer.open')
local paths = require('mcp-tools.files.paths')
local wait = require('mcp-tools.editor.lsp.wait')

local M = {}

--- A configuration that looks for the project's root first may start its server a little after the file is opened, ms.
local APPEARS_MS = 300
--- A server that has been started answers `initialize` by then, ms.
local INITIALIZED_MS = 20000

---@class mcp-tools.lsp.Target
---@field bufnr integer
---@field path string as shown: relative to the root where it is below
---@field fresh boolean its text was read from the disk just now

---@param what string
---@param why string
---@return mcp-tools.Error
local function denied(what, why)
  return errors.new('access_denied', ('%s cannot be read here: it is %s'):format(what, why))
end

--- May the text of a buffer be given to this call?
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@return mcp-tools.Error? err
function M.refusal(ctx, bufnr)
  local readable, why = access.buffer(bufnr, ctx.root)
  local name = vim.api.nvim_buf_get_name(bufnr)
  if readable then
    return nil
  elseif why ~= 'sensitive' then
    local kind = buffer.kind(bufnr)
    if ctx:covers(kind == 'other' and bufnr or (paths.resolve(name))) then
      return nil
    end
  end
  return denied(name ~= '' and access.shown(name, ctx.root) or ('buffer %d'):format(bufnr), why)
end

--- May the text of a file be given to this call?
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@return boolean
---@return string? why not
function M.may_read(ctx, path)
  local bufnr = buffers.of_path(path)
  if bufnr then
    local err = M.refusal(ctx, bufnr)
    return err == nil, err and select(2, access.buffer(bufnr, ctx.root)) or nil
  end
  local ok, why = access.path(path, ctx.root)
  if ok or why ~= 'sensitive' and ctx:covers(path) then
    return true
  end
  return false, why
end

--- Loads a file without showing it: the person's own configuration attaches its servers.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@return integer? bufnr
---@return mcp-tools.Error? err
local function load(ctx, path)
  local ok, why = M.may_read(ctx, path)
  if not ok then
    return nil, denied(access.shown(path, ctx.root), why or 'not to be read')
  end
  return ctx:await(function(done)
    open.load(path, done)
  end)
end

--- The buffer that arguments name, loaded.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args { path: string?, bufnr: integer? }
---@return mcp-tools.lsp.Target? target
---@return mcp-tools.Error? err
function M.find(ctx, args)
  heard.ensure()
  local neither = args.path == nil and args.bufnr == nil
  local found, err = buffers.find({ path = args.path, bufnr = neither and 0 or args.bufnr })
  if not found then
    return nil, err
  end
  local bufnr, fresh = found.bufnr, false
  if bufnr then
    err = M.refusal(ctx, bufnr)
  elseif found.path then
    bufnr, err = load(ctx, (paths.resolve(found.path)))
    fresh = true
  else
    err = errors.new('not_found', ('bufnr: buffer %d is not loaded and has no file'):format(args.bufnr))
  end
  if not bufnr or err then
    return nil, err
  end
  if not fresh then
    local state = ctx:await(function(done)
      disk.refresh(bufnr, done)
    end)
    fresh = state == 'reloaded'
  end
  local name = vim.api.nvim_buf_get_name(bufnr)
  return { bufnr = bufnr, path = name ~= '' and access.shown(name, ctx.root) or '', fresh = fresh }
end

--- The servers of a buffer that can answer, as soon as they have started.
---@param ctx mcp-tools.Ctx in a coroutine
---@param bufnr integer
---@param method? string
---@return vim.lsp.Client[]? clients not empty
---@return mcp-tools.Error? err
function M.clients(ctx, bufnr, method)
  heard.ensure()
  local filetype = vim.bo[bufnr].filetype
  if filetype ~= '' and vim.bo[bufnr].buftype == '' then
    wait.until_(ctx, APPEARS_MS, function()
      return #clients.starting(bufnr) > 0
    end)
  end
  wait.until_(ctx, INITIALIZED_MS, function()
    for _, client in ipairs(clients.starting(bufnr)) do
      if not client.initialized and not clients.is_stopped(client) then
        return false
      end
    end
    return true
  end)
  local list = vim.api.nvim_buf_is_loaded(bufnr) and clients.of(bufnr, method) or {}
  if #list > 0 then
    return list
  end
  local attached = clients.of(bufnr)
  if #attached == 0 then
    local text = 'no language server is attached to %s (filetype %s); lsp_status lists those that run'
    local name = vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
    return nil, errors.new('not_found', text:format(name, filetype ~= '' and filetype or 'unknown'))
  end
  local names = {}
  for i, client in ipairs(attached) do
    names[i] = client.name
  end
  local text = '%s cannot answer %s'
  return nil, errors.new('not_found', text:format(table.concat(names, ', '), method))
end

return M
