--- Language servers, for tools: a question, asked of the servers of a buffer when they are ready, and its answer.
---
---   local target, err = lsp.target(ctx, args)                     -- the buffer, loaded if need be
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

--- Waiting for a server that has just been started; large projects take longer, and the answer says so. ms
M.READY_MS = 15000

--- What a server answers from one file alone, once it has read the project: later work in progress is none of its.
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

--- Servers of a buffer that can answer a method.
M.clients = clients.await
M.state = ready.state

--- The buffer that `path` or `bufnr` names (neither: the file that the person looks at), loaded without being shown.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args { path: string?, bufnr: integer? }
---@return mcp-tools.Target?
---@return mcp-tools.Error? err
function M.target(ctx, args)
  server_state.ensure()
  return target.await(ctx, args, { load = true, current = true })
end

---@class mcp-tools.lsp.Opts
---@field ready_ms? integer how long a server that is not ready is waited for
---@field timeout? integer ms for the answer
---@field every? boolean ask all servers, at the same time; not only until one has an answer
---@field beside? fun(client: vim.lsp.Client) called when a server has just been asked, before it is waited for

---@class mcp-tools.lsp.Info
---@field client vim.lsp.Client
---@field incomplete string? the answer may be a part: this server is not ready

---@alias mcp-tools.lsp.Params table|fun(client: vim.lsp.Client): table

--- Parameters of a question about a place.
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

--- Parameters of a question about a file.
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

--- Waits until a server is ready for a method.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param method string
---@param ms? number
---@return string? incomplete why its answer may be a part
function M.settle(ctx, client, bufnr, method, ms)
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

--- Asks one server as soon as it is ready, for an answer that is waited for later.
---@param ctx mcp-tools.Ctx in a coroutine
---@param client vim.lsp.Client
---@param bufnr integer that it serves
---@param method string
---@param params mcp-tools.lsp.Params
---@param opts mcp-tools.lsp.Opts
---@return fun(): mcp-tools.lsp.Answer?, mcp-tools.Error? answer
local function begin(ctx, client, bufnr, method, params, opts)
  watched_files.tell(ctx)
  local incomplete = M.settle(ctx, client, bufnr, method, opts.ready_ms)
  local given = type(params) == 'function' and params(client) or params
  local answer = request.begin(ctx, client, method, given --[[@as table]], bufnr, opts.timeout)
  if opts.beside then
    opts.beside(client)
  end
  return function()
    local result, err = answer()
    if err then
      return nil, err
    end
    return { result = result, client = client, incomplete = incomplete }
  end
end

--- Asks one server.
---@param ctx mcp-tools.Ctx in a coroutine
---@param client vim.lsp.Client
---@param bufnr integer that it serves
---@param method string
---@param params mcp-tools.lsp.Params
---@param opts? mcp-tools.lsp.Opts
---@return mcp-tools.lsp.Answer? answer
---@return mcp-tools.Error? err
function M.ask_one(ctx, client, bufnr, method, params, opts)
  return begin(ctx, client, bufnr, method, params, opts or {})()
end

--- Asks servers of a buffer.
---@param ctx mcp-tools.Ctx in a coroutine
---@param bufnr integer loaded
---@param method string
---@param params mcp-tools.lsp.Params
---@param opts? mcp-tools.lsp.Opts
---@return mcp-tools.lsp.Answer[]? answers those that are not empty
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
    local text = '%s, so that its answer would be a part; ask again in a few seconds, or wait with lsp_status'
    return nil, errors.new('busy', text:format(unready))
  end
  return answers
end

--- Asks the servers of a buffer in turn, until one has an answer.
---@param ctx mcp-tools.Ctx in a coroutine
---@param bufnr integer loaded
---@param method string
---@param params mcp-tools.lsp.Params
---@param opts? mcp-tools.lsp.Opts
---@return any result nil: there is nothing
---@return mcp-tools.Error? err `busy` when there is nothing as long as the server is not ready
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
