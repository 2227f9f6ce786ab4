--- Requests from tools to the language servers of a buffer, which are sent when the servers are ready.
---
---   local target, err = lsp.target(ctx, args)                     -- the buffer, loaded if necessary
---   local params = lsp.position_params(target.bufnr, line, column) -- a function of the client
---   local result, err, info = lsp.request(ctx, target.bufnr, 'textDocument/hover', params)

local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local server_state = require('mcp-tools.editor.lsp.server_state')
local position = require('mcp-tools.editor.position')
local request = require('mcp-tools.editor.lsp.request')
local server_text = require('mcp-tools.editor.lsp.server_text')
local target = require('mcp-tools.editor.buffer.target')
local watched_files = require('mcp-tools.editor.lsp.watched_files')

local M = {}

--- Default maximum wait for a server to read the project, ms. After it, the answer is marked as incomplete.
local READY_MS = 15000

--- Methods about one file: a server that was ready before answers them completely even while it is indexing.
local LOCAL = {
  ['textDocument/codeAction'] = true,
  ['textDocument/declaration'] = true,
  ['textDocument/definition'] = true,
  ['textDocument/documentSymbol'] = true,
  ['textDocument/formatting'] = true,
  ['textDocument/hover'] = true,
  ['textDocument/inlayHint'] = true,
  ['textDocument/rangeFormatting'] = true,
  ['textDocument/signatureHelp'] = true,
  ['textDocument/typeDefinition'] = true,
}

--- Waits for the servers of a buffer that can answer a method.
M.clients = clients.await

--- Returns the buffer that `path` or `bufnr` names, loaded but not shown; without either, the current file.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { path: string?, bufnr: integer? }
---@return mcp-tools.Target?
---@return mcp-tools.Error? err
function M.target(ctx, args)
  server_state.ensure_listening()
  return target.await(ctx, args, { load = true, current = true })
end

---@class mcp-tools.lsp.Opts
---@field every? boolean ask all servers at the same time; otherwise one after the other, until one has an answer
---@field on_sent? fun(client: vim.lsp.Client) called after the request was sent, before its answer is awaited

---@class mcp-tools.lsp.Info
---@field client vim.lsp.Client
---@field incomplete string? why the answer may be incomplete

---@alias mcp-tools.lsp.Params table|fun(client: vim.lsp.Client): table

--- Returns the parameters of a request about a position, for the encoding of each client.
---@param bufnr integer
---@param line integer from 1
---@param column integer from 1, in characters
---@param more? table
---@return fun(client: vim.lsp.Client): table
function M.position_params(bufnr, line, column, more)
  local text = vim.api.nvim_buf_get_lines(bufnr, line - 1, line, false)[1] or ''
  local uri = vim.uri_from_bufnr(bufnr)
  return function(client)
    return vim.tbl_extend('force', {
      textDocument = { uri = uri },
      position = { line = line - 1, character = position.to_server(text, column, client.offset_encoding) },
    }, more or {})
  end
end

--- Returns the parameters of a request about a file.
---@param bufnr integer
---@param more? table
---@return table
function M.document_params(bufnr, more)
  return vim.tbl_extend('force', { textDocument = { uri = vim.uri_from_bufnr(bufnr) } }, more or {})
end

-- A server is ready when it has read the project, so that its answers are complete. Before that, answers are empty or
-- partial, without an error: typescript-language-server answers from single files until the project is loaded, and on a
-- busy machine it begins to load late. A server is assumed to be ready when it reports no progress and has published
-- diagnostics at least once. One that never publishes is assumed to be ready after some time.

--- Time without progress before a server is idle, ns: it often begins new work just after it ends some.
local QUIET_NS = 100e6
--- The same for a server that has reported progress, but has never published diagnostics, ns.
local QUIET_UNPUBLISHED_NS = 3e9
--- Age of a server that never publishes at which the wait for it ends, and at which it is assumed to be ready, ns.
local PUBLISH_NS, ASSUME_READY_NS = 15e9, 30e9
--- Time between two requests for diagnostics to a server that does not answer them, ms.
local PULL_MS = 300
local PULL = 'textDocument/diagnostic'

---@class mcp-tools.lsp.Readiness
---@field state 'starting'|'indexing'|'unsure'|'ready'|'stopped'
---@field title string? of the current work
---@field message string?
---@field percentage number?

--- Returns the readiness, without a request to the server.
---@param client vim.lsp.Client
---@return mcp-tools.lsp.Readiness
function M.state(client)
  if clients.is_stopped(client) then
    return { state = 'stopped' }
  elseif not client.initialized then
    return { state = 'starting' }
  end
  local busy = server_state.reading_project(server_state.of(client))
  if busy then
    return { state = 'indexing', title = busy.title, message = busy.message, percentage = busy.percentage }
  end
  local state = server_state.of(client)
  return { state = state.ready and vim.uv.hrtime() > (state.unsettled_until or 0) and 'ready' or 'unsure' }
end

--- Returns the title and message of the server's current progress.
---@param readiness mcp-tools.lsp.Readiness
---@return string?
function M.progress_text(readiness)
  local title, message = server_text.text(readiness.title), server_text.text(readiness.message)
  local text = title .. (title ~= '' and message ~= '' and ': ' or '') .. message
  return text ~= '' and text or nil
end

--- Returns the readiness as text: `basedpyright is still indexing, 40 % (12/30 files)`.
---@param client vim.lsp.Client
---@param readiness mcp-tools.lsp.Readiness
---@return string
local function state_text(client, readiness)
  local percent = readiness.percentage and (', %d %%'):format(readiness.percentage) or ''
  local about = M.progress_text(readiness) or ''
  local what = ({
    starting = 'is still starting',
    indexing = 'is still indexing',
    unsure = 'may still be indexing',
    stopped = 'has stopped',
    ready = 'is ready',
  })[readiness.state]
  return ('%s %s%s%s'):format(client.name, what, percent, about ~= '' and (' (%s)'):format(about) or '')
end

--- Returns why an answer of a server may be incomplete.
---@param client vim.lsp.Client
---@return string? nil: it is ready
function M.why_not_ready(client)
  local readiness = M.state(client)
  return readiness.state ~= 'ready' and state_text(client, readiness) or nil
end

--- Returns why an answer of a server that is indexing is incomplete.
---@param client vim.lsp.Client
---@return string? nil: it is not indexing
function M.why_indexing(client)
  local readiness = M.state(client)
  return readiness.state == 'indexing' and state_text(client, readiness) or nil
end

--- Whether a server answers a request for the diagnostics of a file.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@return boolean
local function answers_pull(ctx, client, bufnr)
  if not clients.supports(client, PULL, bufnr) then
    return false
  end
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(bufnr) },
    identifier = clients.pull_identifiers(client, bufnr)[1] or nil,
  }
  return request.ask(ctx, client, PULL, params, bufnr) ~= nil
end

--- Whether the server has been ready before, so that its answers about one file are complete.
---@param client vim.lsp.Client
---@return boolean
function M.was_ready(client)
  return client.initialized and server_state.of(client).ready
end

---@param client vim.lsp.Client
---@return boolean
local function is_quiet(client)
  local state, now = server_state.of(client), vim.uv.hrtime()
  local is_settled = now - state.ended_at > QUIET_NS and now > (state.unsettled_until or 0)
  return is_settled and not server_state.reading_project(state)
end

--- Whether a server that has not published diagnostics is assumed to be ready.
---@param state mcp-tools.lsp.ServerState
---@return boolean
local function is_assumed_ready(state)
  local now = vim.uv.hrtime()
  return now - state.since > ASSUME_READY_NS or state.ended_at > 0 and now - state.ended_at > QUIET_UNPUBLISHED_NS
end

--- Waits until a server is ready.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param client vim.lsp.Client
---@param bufnr integer a buffer of the server
---@param ms number maximum wait
---@return string? incomplete why its answers may be incomplete
function M.await_ready(ctx, client, bufnr, ms)
  server_state.ensure_listening()
  local deadline, patience = vim.uv.hrtime() + ms * 1e6, math.max(PUBLISH_NS, ms * 1e6)
  local function left()
    return (deadline - vim.uv.hrtime()) / 1e6
  end
  server_state.await(ctx, left(), function()
    return client.initialized or clients.is_stopped(client)
  end)
  local state = server_state.of(client)
  while client.initialized and not clients.is_stopped(client) do
    if state.ready and not server_state.reading_project(state) and vim.uv.hrtime() > (state.unsettled_until or 0) then
      return nil
    end
    local quiet = server_state.await(ctx, left(), function()
      if clients.is_stopped(client) then
        return true
      elseif not is_quiet(client) then
        return false
      end
      local is_known = state.ready or state.has_published or is_assumed_ready(state)
      return is_known or vim.uv.hrtime() - state.since > patience or clients.supports(client, PULL, bufnr)
    end)
    if not quiet or clients.is_stopped(client) then
      break
    end
    state.ready = state.ready or state.has_published or is_assumed_ready(state) or answers_pull(ctx, client, bufnr)
    if left() <= 0 or not vim.api.nvim_buf_is_loaded(bufnr) then
      break
    elseif not state.ready and not clients.supports(client, PULL, bufnr) then
      break
    elseif not state.ready then
      server_state.pause(ctx, math.min(left(), PULL_MS))
    end
  end
  return M.why_not_ready(client)
end

-- Requests -------------------------------------------------------------------------------------------------------

---@param result any
---@return boolean
local function is_empty(result)
  return result == nil or type(result) == 'table' and next(result) == nil
end

--- Waits until a server can answer a method completely.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param method string
---@param ms? number
---@return string? incomplete why the answer may be incomplete
function M.await_ready_for(ctx, client, bufnr, method, ms)
  if LOCAL[method] and M.was_ready(client) then
    return nil
  end
  return M.await_ready(ctx, client, bufnr, ms or READY_MS)
end

---@class mcp-tools.lsp.Answer
---@field result any may be empty
---@field client vim.lsp.Client
---@field incomplete string?

--- Sends a request to one server when it is ready or the wait is over. Sends it again if the server turns out
--- not to have been ready.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param client vim.lsp.Client
---@param bufnr integer a buffer of the server
---@param method string
---@param params mcp-tools.lsp.Params
---@param opts? mcp-tools.lsp.Opts
---@return fun(): mcp-tools.lsp.Answer?, mcp-tools.Error? wait returns the answer
function M.begin(ctx, client, bufnr, method, params, opts)
  opts = opts or {}
  local deadline = vim.uv.hrtime() + READY_MS * 1e6
  local state, incomplete, is_certain, was_reading, answer = server_state.of(client), nil, nil, nil, nil
  watched_files.notify_servers(ctx)
  local function ask()
    incomplete = M.await_ready_for(ctx, client, bufnr, method, (deadline - vim.uv.hrtime()) / 1e6)
    is_certain, was_reading = state.ready, M.why_indexing(client) ~= nil
    local sent = type(params) == 'function' and params(client) or params
    answer = request.begin(ctx, client, method, sent --[[@as table]], bufnr)
  end
  local function is_premature()
    if is_certain and LOCAL[method] or was_reading or clients.is_stopped(client) then
      return false
    end
    return M.why_indexing(client) ~= nil or not is_certain and state.has_published
  end
  ask()
  if opts.on_sent then
    opts.on_sent(client)
  end
  return function()
    local result, err = answer()
    if not err and is_premature() then
      ask()
      result, err = answer()
      incomplete = incomplete or is_premature() and M.why_not_ready(client) or nil
    end
    if err then
      return nil, err
    end
    return { result = result, client = client, incomplete = incomplete }
  end
end

--- Asks the servers of a buffer and waits for their answers.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param bufnr integer loaded
---@param method string
---@param params mcp-tools.lsp.Params
---@param opts? mcp-tools.lsp.Opts
---@return mcp-tools.lsp.Answer[]? answers without empty ones
---@return mcp-tools.Error? err
function M.request_all(ctx, bufnr, method, params, opts)
  opts = opts or {}
  local list, err = clients.await(ctx, bufnr, method)
  if not list then
    return nil, err
  end
  local answers, unready, failed, asked = {}, nil, nil, {}
  for i, client in ipairs(opts.every and list or {}) do
    asked[i] = M.begin(ctx, client, bufnr, method, params, opts)
  end
  for i, client in ipairs(list) do
    local answer, fault = (asked[i] or M.begin(ctx, client, bufnr, method, params, opts))()
    failed = failed or fault
    if answer and not is_empty(answer.result) then
      table.insert(answers, answer)
      if not opts.every then
        break
      end
    elseif answer then
      unready = unready or answer.incomplete
    end
  end
  if #answers > 0 then
    return answers
  elseif failed then
    return nil, failed
  elseif unready then
    local text = '%s, so its answer would be incomplete; ask again in a few seconds. editor_servers shows its state'
    return nil, errors.new('busy', text:format(unready))
  end
  return answers
end

--- Asks the servers of a buffer one after the other, until one has an answer.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param bufnr integer loaded
---@param method string
---@param params mcp-tools.lsp.Params
---@return any result nil: no server has an answer
---@return mcp-tools.Error? err `busy` if there is no answer and a server is not ready
---@return mcp-tools.lsp.Info? info
function M.request(ctx, bufnr, method, params)
  local answers, err = M.request_all(ctx, bufnr, method, params)
  local first = answers and answers[1]
  if not first then
    return nil, err
  end
  return first.result, nil, { client = first.client, incomplete = first.incomplete }
end

return M
