--- One question to one language server.

local clients = require('mcp-tools.editor.lsp.clients')
local deadline = require('mcp-tools.util.deadline')
local errors = require('mcp-tools.errors')
local server_state = require('mcp-tools.editor.lsp.server_state')
local server_text = require('mcp-tools.editor.lsp.server_text')
local timer = require('mcp-tools.util.timer')

local M = {}

--- Default timeout, ms.
M.TIMEOUT_MS = 20000
--- Between looks whether the server still lives; nobody says when it died.
local LOOK_MS = 500
--- `RequestCancelled`.
local CANCELLED = -32800

--- ContentModified, the server's own cancel, or somebody else's: it may be asked again.
local AGAIN = { [CANCELLED] = true, [-32801] = true, [-32802] = true }
local TRIES = 5

---@param client vim.lsp.Client
---@param method string
---@param message string the server's own
---@return mcp-tools.Error
local function error_of(client, method, message)
  local text = '%s answered %s with an error: %s'
  return errors.new('tool_error', text:format(client.name, method, server_text.text(message)))
end

---@class mcp-tools.lsp.Question
---@field client vim.lsp.Client
---@field method string
---@field params table?
---@field bufnr integer? whose changes the server has to know
---@field timeout number ms

--- Sends a question once. `cb` is called on the main loop, once, perhaps before this returns.
---
--- Neovim itself cancels every question for diagnostics of a buffer before it asks its own, and a server may answer
--- what was cancelled with an empty list: that is no answer.
---@param question mcp-tools.lsp.Question
---@param cb fun(err: lsp.ResponseError?, result: any, fault: mcp-tools.Error?)
---@return fun() cancel after which `cb` is not called
local function send(question, cb)
  local client, method = question.client, question.method
  local id, look, over
  local of, asked_at = server_state.of(client), vim.uv.hrtime()
  local asked = of.asked
  local function stop()
    over = true
    if id then
      asked[id] = nil
    end
    if look then
      look:stop()
    end
  end
  local function finish(err, result, code, text)
    if not over then
      stop()
      cb(err, result, code and errors.new(code, text))
    end
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
    return stop -- by a server inside of the editor
  elseif not id then
    finish(nil, nil, 'tool_error', ('%s has stopped'):format(client.name))
    return stop
  end
  asked[id] = 'waiting'
  local limit = vim.uv.hrtime() + question.timeout * 1e6
  look = timer.every(LOOK_MS, function()
    if clients.is_stopped(client) then
      finish(nil, nil, 'tool_error', ('%s stopped before it answered %s'):format(client.name, method))
    elseif is_cancelled() then
      finish(cancelled) -- of an answer that says so nobody hears
    elseif vim.uv.hrtime() > limit then
      clients.cancel(client, id)
      local text = '%s did not answer %s within %.3g s; lsp_status says what it is at'
      finish(nil, nil, 'timeout', text:format(client.name, method, question.timeout / 1000))
    end
  end)
  return function()
    if not over then
      clients.cancel(client, id)
      stop()
    end
  end
end

--- Adds a token to the parameters of methods that report their progress by one.
---@param method string
---@param params table?
---@return table?
local function with_token(method, params)
  if params == nil or not vim.startswith(method, 'textDocument/') and method ~= 'workspace/symbol' then
    return params
  end
  return vim.tbl_extend('keep', params, { workDoneToken = server_state.token() })
end

--- Asks a server, again when it says that it changed its mind meanwhile.
---@param client vim.lsp.Client
---@param method string
---@param params table?
---@param opts { bufnr: integer?, timeout: number } `bufnr`: whose changes the server has to know; `timeout`: ms
---@param cb fun(result: any, err: mcp-tools.Error?, message: string?) called on the main loop, once, perhaps before
---  this returns; `message`: of an error that the server has answered
---@return fun() cancel after which `cb` is not called
function M.start(client, method, params, opts, cb)
  local question = {
    client = client,
    method = method,
    params = with_token(method, params),
    bufnr = opts.bufnr,
    timeout = opts.timeout,
  }
  local over, cancel = false, nil
  local function attempt(try)
    cancel = nil
    local stop = send(question, function(err, result, fault)
      if over then
        return
      elseif err and AGAIN[err.code] and try < TRIES then
        local again = timer.after(50 * try, function()
          attempt(try + 1)
        end)
        cancel = function()
          again:stop()
        end
      elseif err then
        local message = tostring(err.message)
        cb(nil, error_of(client, method, message), message)
      else
        cb(result ~= vim.NIL and result or nil, fault)
      end
    end)
    cancel = cancel or stop
  end
  attempt(1)
  return function()
    over = true
    cancel()
  end
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
  local answer, waiting
  local opts = { bufnr = bufnr, timeout = deadline.bound(ctx, timeout or M.TIMEOUT_MS) }
  local cancel = M.start(client, method, params, opts, function(...)
    answer = vim.F.pack_len(...)
    if waiting then
      waiting()
    end
  end)
  ctx:on_cancel(cancel)
  ctx.call:on_end(cancel) -- of a call that answered without waiting for it
  return function()
    if not answer then
      ctx:await(function(done)
        waiting = done
      end)
    end
    local result, err, message = vim.F.unpack_len(answer)
    if message then
      server_text.refresh(ctx)
      err = error_of(client, method, message)
    end
    return result, err
  end
end

--- Asks a server, and waits for the answer.
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
