--- Requests from tools to the language servers of a buffer: waits until they are ready, sends, returns the answer.
---
---   local target, err = lsp.target(ctx, args)                     -- the buffer, loaded if necessary
---   local place = lsp.place(target.bufnr, line, column)           -- parameters for each client's encoding
---   local result, err, info = lsp.request(ctx, target.bufnr, 'textDocument/hover', place)

local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local server_state = require('mcp-tools.editor.lsp.server_state')
local position = require('mcp-tools.editor.lsp.position')
local ready = require('mcp-tools.editor.lsp.ready')
local request = require('mcp-tools.editor.lsp.request')
local target = require('mcp-tools.editor.buffer.target')
local watched_files = require('mcp-tools.editor.lsp.watched_files')

local M = {}

--- Default wait for a server that has just started, ms. The answer says when a large project took longer.
M.READY_MS = 15000

--- Methods that a server answers from one file, so that one that was ready once is asked without waiting again.
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
M.state = ready.state

--- Returns the buffer that `path` or `bufnr` names, loaded but not shown; without either, the current file.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args { path: string?, bufnr: integer? }
---@return mcp-tools.Target?
---@return mcp-tools.Error? err
function M.target(ctx, args)
  server_state.ensure_listening()
  return target.await(ctx, args, { load = true, current = true })
end

---@class mcp-tools.lsp.Opts
---@field ready_ms? integer maximum wait for a server that is not ready
---@field timeout? integer ms for the answer
---@field every? boolean ask all servers at the same time; otherwise one after the other, until one has an answer
---@field on_sent? fun(client: vim.lsp.Client) called after a server was asked, before its answer is awaited

---@class mcp-tools.lsp.Info
---@field client vim.lsp.Client
---@field incomplete string? why the answer may be incomplete: the server is not ready

---@alias mcp-tools.lsp.Params table|fun(client: vim.lsp.Client): table

--- Returns the parameters of a request about a position, for the encoding of each client.
---@param bufnr integer
---@param line integer from 1
---@param column integer from 1, in characters
---@param more? table
---@return fun(client: vim.lsp.Client): table
function M.place(bufnr, line, column, more)
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
function M.document(bufnr, more)
  return vim.tbl_extend('force', { textDocument = { uri = vim.uri_from_bufnr(bufnr) } }, more or {})
end

---@param result any
---@return boolean
local function is_empty(result)
  return result == nil or type(result) == 'table' and next(result) == nil
end

--- Waits until a server is ready to answer a method.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param method string
---@param ms? number
---@return string? incomplete why the answer may be incomplete
function M.wait_until_ready(ctx, client, bufnr, method, ms)
  if LOCAL[method] and ready.was_ready(client) then
    return nil
  end
  local ok, readiness = ready.wait(ctx, client, bufnr, ms or M.READY_MS)
  return not ok and ready.text(client, readiness) or nil
end

---@class mcp-tools.lsp.Answer
---@field result any may be empty
---@field client vim.lsp.Client
---@field incomplete string?

--- Sends a request to one server as soon as it is ready.
---@param ctx mcp-tools.Ctx in a coroutine
---@param client vim.lsp.Client
---@param bufnr integer a buffer of the server
---@param method string
---@param params mcp-tools.lsp.Params
---@param opts mcp-tools.lsp.Opts
---@return fun(): mcp-tools.lsp.Answer?, mcp-tools.Error? wait returns the answer
local function begin(ctx, client, bufnr, method, params, opts)
  watched_files.notify_servers(ctx)
  local incomplete = M.wait_until_ready(ctx, client, bufnr, method, opts.ready_ms)
  local sent = type(params) == 'function' and params(client) or params
  local answer = request.begin(ctx, client, method, sent --[[@as table]], bufnr, opts.timeout)
  if opts.on_sent then
    opts.on_sent(client)
  end
  return function()
    local result, err = answer()
    if err then
      return nil, err
    end
    return { result = result, client = client, incomplete = incomplete }
  end
end

--- Asks one server and waits for the answer.
---@param ctx mcp-tools.Ctx in a coroutine
---@param client vim.lsp.Client
---@param bufnr integer a buffer of the server
---@param method string
---@param params mcp-tools.lsp.Params
---@param opts? mcp-tools.lsp.Opts
---@return mcp-tools.lsp.Answer? answer
---@return mcp-tools.Error? err
function M.ask_one(ctx, client, bufnr, method, params, opts)
  return begin(ctx, client, bufnr, method, params, opts or {})()
end

--- Asks the servers of a buffer and waits for their answers.
---@param ctx mcp-tools.Ctx in a coroutine
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
    asked[i] = begin(ctx, client, bufnr, method, params, opts)
  end
  for i, client in ipairs(list) do
    local answer, fault = (asked[i] or begin(ctx, client, bufnr, method, params, opts))()
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
    local text = '%s, so its answer would be incomplete; ask again in a few seconds, or wait with lsp_status'
    return nil, errors.new('busy', text:format(unready))
  end
  return answers
end

--- Asks the servers of a buffer one after the other, until one has an answer.
---@param ctx mcp-tools.Ctx in a coroutine
---@param bufnr integer loaded
---@param method string
---@param params mcp-tools.lsp.Params
---@param opts? mcp-tools.lsp.Opts
---@return any result nil: no server has an answer
---@return mcp-tools.Error? err `busy` if there is no answer and a server is not ready
---@return mcp-tools.lsp.Info? info
function M.request(ctx, bufnr, method, params, opts)
  local answers, err = M.request_all(ctx, bufnr, method, params, opts)
  local first = answers and answers[1]
  if not first then
    return nil, err
  end
  return first.result, nil, { client = first.client, incomplete = first.incomplete }
end

return M
