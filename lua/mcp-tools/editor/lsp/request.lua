--- One question to one language server, in the coroutine of a `run` tool.
---
--- Receives: a client, a method, parameters; the ctx whose end cancels it.
--- Sends: the server's answer, or why there is none.
--- Does not know about: which client is to be asked, whether it is ready.

local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local heard = require('mcp-tools.editor.lsp.heard')
local timer = require('mcp-tools.util.timer')

local M = {}

--- A server that is asked something it can answer does so sooner, or is at something else.
M.TIMEOUT_MS = 20000
--- Between looks whether the server still lives; nobody says when it died.
local LOOK_MS = 500

--- ContentModified, and the server's own cancel: it changed its mind, and may be asked again.
local AGAIN = { [-32801] = true, [-32802] = true }
local TRIES = 5

---@param client vim.lsp.Client
---@param method string
---@param err lsp.ResponseError
---@return mcp-tools.Error
local function fault(client, method, err)
  local message = ('%s answered %s with an error: %s'):format(client.name, method, tostring(err.message))
  return errors.new('tool_error', message)
end

---@param ctx mcp-tools.Ctx
---@param timeout integer ms
---@return integer ms what is left of the call, a little less
local function time_left(ctx, timeout)
  if not ctx.deadline then
    return timeout
  end
  return math.max(1, math.min(timeout, (ctx.deadline - vim.uv.hrtime()) / 1e6 - 200))
end

---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param method string
---@param params table?
---@param bufnr integer?
---@param timeout integer ms
---@return lsp.ResponseError? err
---@return any result
---@return mcp-tools.Error? fault
local function ask(ctx, client, method, params, bufnr, timeout)
  return ctx:await(function(done)
    local id, look, over
    local function finish(err, result, why)
      if over then
        return
      end
      over = true
      if look then
        look:stop()
      end
      done(err, result, why)
    end
    id = clients.request(client, method, params, bufnr, finish)
    if over then
      return -- by a server inside of the editor
    elseif not id then
      return finish(nil, nil, errors.new('tool_error', ('%s has stopped'):format(client.name)))
    end
    local limit = vim.uv.hrtime() + time_left(ctx, timeout) * 1e6
    look = timer.every(LOOK_MS, function()
      if clients.is_stopped(client) then
        finish(nil, nil, errors.new('tool_error', ('%s stopped before it answered %s'):format(client.name, method)))
      elseif vim.uv.hrtime() > limit then
        clients.cancel(client, id)
        local text = '%s did not answer %s within %g s; lsp_status says what it is at'
        finish(nil, nil, errors.new('timeout', text:format(client.name, method, timeout / 1000)))
      end
    end)
    ctx:on_cancel(function()
      if not over then
        clients.cancel(client, id)
        finish()
      end
    end)
  end)
end

--- Methods whose parameters have a place for a token of their progress.
local function with_token(method, params)
  if params == nil or not vim.startswith(method, 'textDocument/') and method ~= 'workspace/symbol' then
    return params
  end
  return vim.tbl_extend('keep', params, { workDoneToken = heard.token() })
end

--- Asks a server, again when it says that it changed its mind meanwhile.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param method string
---@param params table?
---@param bufnr? integer whose changes the server has to know
---@param timeout? integer ms
---@return any result nil where the server has none
---@return mcp-tools.Error? err
function M.ask(ctx, client, method, params, bufnr, timeout)
  params = with_token(method, params)
  for try = 1, TRIES do
    local err, result, why = ask(ctx, client, method, params, bufnr, timeout or M.TIMEOUT_MS)
    if why then
      return nil, why
    elseif not err then
      return result ~= vim.NIL and result or nil
    elseif not AGAIN[err.code] or try == TRIES then
      return nil, fault(client, method, err)
    end
    ctx:await(function(done)
      vim.defer_fn(done, 50 * try)
    end)
  end
end

return M
