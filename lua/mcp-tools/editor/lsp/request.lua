--- One request to one language server.

local clients = require('mcp-tools.editor.lsp.clients')
local deadline = require('mcp-tools.util.deadline')
local errors = require('mcp-tools.errors')
local server_state = require('mcp-tools.editor.lsp.server_state')
local server_text = require('mcp-tools.editor.lsp.server_text')
local timer = require('mcp-tools.util.timer')

local M = {}

--- Default timeout, ms.
M.TIMEOUT_MS = 20000
--- Interval of the check whether the server is still running: no event reports its exit.
local CHECK_MS = 500
--- `RequestCancelled`.
local CANCELLED = -32800

--- Errors after which a request is repeated: the server or another plugin cancelled it, or the text has changed.
local RETRIED = { [CANCELLED] = true, [-32801] = true, [-32802] = true }
local TRIES = 5

---@class mcp-tools.lsp.Request
---@field client vim.lsp.Client
---@field method string
---@field params table?
---@field bufnr integer? buffer whose pending changes are sent first
---@field timeout number ms

--- Sends a request once. `cb` is called on the main loop, once, perhaps before this returns.
---
--- Neovim cancels all diagnostic requests of a buffer before it sends its own, and a server may answer a cancelled
--- request with an empty list. Such an answer is discarded.
---@param outgoing mcp-tools.lsp.Request
---@param cb fun(err: lsp.ResponseError?, result: any, fault: mcp-tools.Error?)
---@return fun() cancel after it, `cb` is not called
local function send(outgoing, cb)
  local client, method = outgoing.client, outgoing.method
  local id, check, is_finished
  local state, asked_at = server_state.of(client), vim.uv.hrtime()
  local asked = state.asked
  local function stop()
    is_finished = true
    if id then
      asked[id] = nil
    end
    if check then
      check:stop()
    end
  end
  local function finish(err, result, code, text)
    if not is_finished then
      stop()
      cb(err, result, code and errors.new(code, text))
    end
  end
  local function is_cancelled()
    return id ~= nil and asked[id] == 'cancelled'
  end
  local cancelled = { code = CANCELLED, message = 'the request was cancelled by another plugin' }
  id = clients.request(client, method, outgoing.params, outgoing.bufnr, function(err, result)
    if not err then
      state.answered_at = math.max(state.answered_at, asked_at)
    end
    finish(is_cancelled() and cancelled or err, result)
  end)
  if is_finished then
    return stop -- an in-process server has answered already
  elseif not id then
    finish(nil, nil, 'tool_error', ('%s has stopped'):format(client.name))
    return stop
  end
  asked[id] = 'waiting'
  local limit = vim.uv.hrtime() + outgoing.timeout * 1e6
  check = timer.every(CHECK_MS, function()
    if clients.is_stopped(client) then
      finish(nil, nil, 'tool_error', ('%s stopped before it answered %s'):format(client.name, method))
    elseif is_cancelled() then
      finish(cancelled) -- Neovim does not report the answer to a cancelled request
    elseif vim.uv.hrtime() > limit then
      clients.cancel(client, id)
      local text = '%s did not answer %s within %.3g s; editor_servers shows its state'
      finish(nil, nil, 'timeout', text:format(client.name, method, outgoing.timeout / 1000))
    end
  end)
  return function()
    if not is_finished then
      clients.cancel(client, id)
      stop()
    end
  end
end

--- Adds a progress token to the parameters of methods that report progress.
---@param method string
---@param params table?
---@return table?
local function with_token(method, params)
  if params == nil or not vim.startswith(method, 'textDocument/') and method ~= 'workspace/symbol' then
    return params
  end
  return vim.tbl_extend('keep', params, { workDoneToken = server_state.token() })
end

--- Sends a request without waiting for the answer.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param method string
---@param params table?
---@param bufnr? integer buffer whose pending changes are sent first
---@param timeout? integer ms
---@return fun(): any, mcp-tools.Error? wait returns the answer; call it once, in the coroutine of a `run` tool
function M.begin(ctx, client, method, params, bufnr, timeout)
  local outgoing = {
    client = client,
    method = method,
    params = with_token(method, params),
    bufnr = bufnr,
    timeout = deadline.bound(ctx, timeout or M.TIMEOUT_MS),
  }
  local answer, waiting, cancel, is_ended
  local function finish(...)
    answer = vim.F.pack_len(...)
    if waiting then
      waiting()
    end
  end
  local function attempt(try)
    cancel = nil
    local stop = send(outgoing, function(err, result, fault)
      if is_ended then
        return
      elseif err and RETRIED[err.code] and try < TRIES then
        local again = timer.after(50 * try, function()
          attempt(try + 1)
        end)
        cancel = function()
          again:stop()
        end
      elseif err then
        finish(nil, nil, tostring(err.message))
      else
        finish(result ~= vim.NIL and result or nil, fault)
      end
    end)
    cancel = cancel or stop
  end
  attempt(1)
  local function stop()
    is_ended = true
    cancel()
  end
  ctx:on_cancel(stop)
  ctx.call:on_end(stop) -- if the call ends without waiting for the answer
  return function()
    if not answer then
      ctx:await(function(done)
        waiting = done
      end)
    end
    local result, err, message = vim.F.unpack_len(answer)
    if message then
      server_text.refresh(ctx)
      local text = '%s answered %s with an error: %s'
      err = errors.new('tool_error', text:format(client.name, method, server_text.text(message)))
    end
    return result, err
  end
end

--- Sends a request and waits for the answer.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param client vim.lsp.Client
---@param method string
---@param params table?
---@param bufnr? integer buffer whose pending changes are sent first
---@param timeout? integer ms
---@return any result nil if the server has none
---@return mcp-tools.Error? err
function M.ask(ctx, client, method, params, bufnr, timeout)
  return M.begin(ctx, client, method, params, bufnr, timeout)()
end

return M
