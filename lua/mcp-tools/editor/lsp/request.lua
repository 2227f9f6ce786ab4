--- One question to one language server, in the coroutine of a `run` tool.
---
--- Receives: a client, a method, parameters; the ctx whose end cancels it.
--- Sends: the server's answer, or why there is none.
--- Does not know about: which client is to be asked, whether it is ready.

local clients = require('mcp-tools.editor.lsp.clients')
local deadline = require('mcp-tools.util.deadline')
local errors = require('mcp-tools.errors')
local notifications = require('mcp-tools.editor.lsp.notifications')
local progress = require('mcp-tools.editor.lsp.progress')
local server_text = require('mcp-tools.editor.lsp.server_text')
local timer = require('mcp-tools.util.timer')

local M = {}

--- A server that is asked something it can answer does so sooner, or is at something else.
M.TIMEOUT_MS = 20000
--- Between looks whether the server still lives; nobody says when it died.
local LOOK_MS = 500
--- `RequestCancelled`.
local CANCELLED = -32800

--- ContentModified, the server's own cancel, or somebody else's: it may be asked again.
local AGAIN = { [CANCELLED] = true, [-32801] = true, [-32802] = true }
local TRIES = 5

---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param method string
---@param err lsp.ResponseError
---@return mcp-tools.Error
local function fault(ctx, client, method, err)
  server_text.refresh(ctx)
  local message = server_text.text(tostring(err.message))
  return errors.new('tool_error', ('%s answered %s with an error: %s'):format(client.name, method, message))
end

---@class mcp-tools.lsp.Question
---@field client vim.lsp.Client
---@field method string
---@field params table?
---@field bufnr integer? whose changes the server has to know
---@field timeout integer ms

--- Sends a question. Neovim itself cancels every question for diagnostics of a buffer before it asks its own, and a
--- server may answer what was cancelled with a list that is empty: that is no answer. `cb` is called on the main loop,
--- once, perhaps before this returns.
---@param ctx mcp-tools.Ctx
---@param question mcp-tools.lsp.Question
---@param cb fun(err: lsp.ResponseError?, result: any, fault: mcp-tools.Error?)
local function send(ctx, question, cb)
  local client, method = question.client, question.method
  local id, look, over
  local of, asked_at = notifications.of(client), vim.uv.hrtime()
  local asked = of.asked
  local function finish(err, result, why)
    if over then
      return
    end
    over = true
    if id then
      asked[id] = nil
    end
    if look then
      look:stop()
    end
    cb(err, result, why)
  end
  local function is_cancelled()
    return id ~= nil and asked[id] == 'cancelled'
  end
  local cancelled = { code = CANCELLED, message = 'the question was cancelled by another' }
  id = clients.request(client, method, question.params, question.bufnr, function(err, result)
    if not err then
      of.answered_at = math.max(of.answered_at, asked_at)
    end
    finish(is_cancelled() and cancelled or err, result)
  end)
  if over then
    return -- by a server inside of the editor
  elseif not id then
    return finish(nil, nil, errors.new('tool_error', ('%s has stopped'):format(client.name)))
  end
  asked[id] = 'waiting'
  local limit = vim.uv.hrtime() + deadline.bound(ctx, question.timeout) * 1e6
  look = timer.every(LOOK_MS, function()
    if clients.is_stopped(client) then
      finish(nil, nil, errors.new('tool_error', ('%s stopped before it answered %s'):format(client.name, method)))
    elseif is_cancelled() then
      finish(cancelled) -- of an answer that says so nobody hears
    elseif vim.uv.hrtime() > limit then
      clients.cancel(client, id)
      local text = '%s did not answer %s within %g s; lsp_status says what it is at'
      finish(nil, nil, errors.new('timeout', text:format(client.name, method, question.timeout / 1000)))
    end
  end)
  local function drop()
    if not over then
      clients.cancel(client, id)
      finish()
    end
  end
  ctx:on_cancel(drop)
  ctx.call:on_end(drop) -- of a call that answered without waiting for it
end

--- Methods whose parameters have a place for a token of their progress.
local function with_token(method, params)
  if params == nil or not vim.startswith(method, 'textDocument/') and method ~= 'workspace/symbol' then
    return params
  end
  return vim.tbl_extend('keep', params, { workDoneToken = progress.token() })
end

--- Asks a server now, for an answer that is waited for later: other work goes on meanwhile.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param method string
---@param params table?
---@param bufnr? integer whose changes the server has to know
---@param timeout? integer ms
---@return fun(): any, mcp-tools.Error? answer waits for it, in the coroutine of a `run` tool; to be called once
function M.begin(ctx, client, method, params, bufnr, timeout)
  local question = {
    client = client,
    method = method,
    params = with_token(method, params),
    bufnr = bufnr,
    timeout = timeout or M.TIMEOUT_MS,
  }
  local come, waiting
  local function sent()
    come, waiting = nil, nil
    send(ctx, question, function(...)
      come = vim.F.pack_len(...)
      if waiting then
        waiting()
      end
    end)
  end
  local function settled()
    if not come then
      ctx:await(function(done)
        waiting = done
      end)
    end
    return vim.F.unpack_len(come)
  end
  sent()
  return function()
    for try = 1, TRIES do
      local err, result, why = settled()
      if why then
        return nil, why
      elseif not err then
        return result ~= vim.NIL and result or nil
      elseif not AGAIN[err.code] or try == TRIES then
        return nil, fault(ctx, client, method, err)
      end
      ctx:await(function(done)
        vim.defer_fn(done, 50 * (try - 1))
      end)
      sent()
    end
  end
end

--- Asks a server, again when it says that it changed its mind meanwhile.
---@param ctx mcp-tools.Ctx in a coroutine
---@param client vim.lsp.Client
---@param method string
---@param params table?
---@param bufnr? integer whose changes the server has to know
---@param timeout? integer ms
---@return any result nil where the server has none
---@return mcp-tools.Error? err
function M.ask(ctx, client, method, params, bufnr, timeout)
  return M.begin(ctx, client, method, params, bufnr, timeout)()
end

return M
