--- Readiness: has a language server read the project, so that its answers are whole?
---
--- Before a server has read the project it answers with nothing or a part, and no error. Ready is one that is at
--- nothing and has once said what it thinks of an open file, which it can do only after that. One that never says
--- anything is asked for the same thing until the answer stays the same.

local clients = require('mcp-tools.editor.lsp.clients')
local server_state = require('mcp-tools.editor.lsp.server_state')
local request = require('mcp-tools.editor.lsp.request')
local server_text = require('mcp-tools.editor.lsp.server_text')

local M = {}

--- Servers begin one piece of work when they end another; ns.
local QUIET = 100e6
--- A server that has something to say about a file says it by then, or never; ns.
local SPEAKS = 3e9
--- Between two probes, ms: a server that is still reading comes to know more in this time.
local PROBE_MS = 300
local PULL = 'textDocument/diagnostic'
--- Equal answers in a row.
local PROBES = 3

---@class mcp-tools.lsp.Readiness
---@field state 'starting'|'indexing'|'unsure'|'ready'|'stopped'
---@field title string? what it is at
---@field message string?
---@field percentage number?

--- What is known right now.
---@param client vim.lsp.Client
---@return mcp-tools.lsp.Readiness
function M.state(client)
  if clients.is_stopped(client) then
    return { state = 'stopped' }
  elseif not client.initialized then
    return { state = 'starting' }
  end
  local busy = server_state.reads(server_state.of(client))
  if busy then
    return { state = 'indexing', title = busy.title, message = busy.message, percentage = busy.percentage }
  end
  local of = server_state.of(client)
  return { state = of.ready and vim.uv.hrtime() > (of.unsettled or 0) and 'ready' or 'unsure' }
end

--- What it is at, in its own words.
---@param readiness mcp-tools.lsp.Readiness
---@return string?
function M.doing(readiness)
  local parts = {}
  for _, each in ipairs({ 'title', 'message' }) do
    table.insert(parts, server_text.some(readiness[each]))
  end
  return #parts > 0 and table.concat(parts, ': ') or nil
end

--- In words, for answers: `basedpyright is still indexing, 40 % (12/30 files)`.
---@param client vim.lsp.Client
---@param readiness mcp-tools.lsp.Readiness
---@return string
function M.text(client, readiness)
  local percent = readiness.percentage and (', %d %%'):format(readiness.percentage) or ''
  local about = M.doing(readiness) or ''
  local what = ({
    starting = 'is still starting',
    indexing = 'is still indexing',
    unsure = 'may still be indexing',
    stopped = 'has stopped',
    ready = 'is ready',
  })[readiness.state]
  return ('%s %s%s%s'):format(client.name, what, percent, about ~= '' and (' (%s)'):format(about) or '')
end

--- Whatever grows while a server reads: symbols of the file, and places where the first of them is used.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@return string answers
local function probe(ctx, client, bufnr)
  local document = { uri = vim.uri_from_bufnr(bufnr) }
  local counts, at = {}, nil
  if clients.supports(client, 'textDocument/documentSymbol', bufnr) then
    local symbols = request.ask(ctx, client, 'textDocument/documentSymbol', { textDocument = document }, bufnr) or {}
    local first = symbols[1]
    local range = first and (first.selectionRange or first.location and first.location.range)
    at = range and range.start
    table.insert(counts, #symbols)
  end
  if at and clients.supports(client, 'textDocument/references', bufnr) then
    local params = { textDocument = document, position = at, context = { includeDeclaration = true } }
    table.insert(counts, #(request.ask(ctx, client, 'textDocument/references', params, bufnr) or {}))
  end
  return table.concat(counts, ' ')
end

---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param over integer ns
---@return boolean
local function is_stable(ctx, client, bufnr, over)
  local last, same = nil, 0
  while vim.uv.hrtime() < over do
    if
      server_state.busy(server_state.of(client))
      or clients.is_stopped(client)
      or not vim.api.nvim_buf_is_loaded(bufnr)
    then
      return false
    elseif server_state.of(client).spoke then
      return true -- which says more than answers that stay the same
    end
    local answer = probe(ctx, client, bufnr)
    same = answer == last and same + 1 or 1
    last = answer
    if same >= PROBES then
      return true
    end
    server_state.await(ctx, PROBE_MS, function()
      return server_state.of(client).spoke
    end)
  end
  return false
end

--- Did it say something about a file already before anybody listened?
---@param client vim.lsp.Client
---@return boolean
local function has_diagnostics(client)
  local namespaces = { vim.lsp.diagnostic.get_namespace(client.id, false) }
  for _, identifier in ipairs(clients.pull_identifiers(client)) do
    table.insert(namespaces, vim.lsp.diagnostic.get_namespace(client.id, true, identifier or nil))
  end
  return next(vim.diagnostic.count(nil, { namespace = namespaces })) ~= nil -- `get` would copy them
end

--- Whether a server that is asked for diagnostics, and does not publish any, has an answer for a file.
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

--- Has it been ready once? Then what it says of one file is whole, whatever it is at.
---@param client vim.lsp.Client
---@return boolean
function M.was_ready(client)
  return client.initialized and server_state.of(client).ready
end

---@param client vim.lsp.Client
---@return boolean
local function is_quiet(client)
  local of, now = server_state.of(client), vim.uv.hrtime()
  return server_state.reads(of) == nil and now - of.ended_at > QUIET and now > (of.unsettled or 0)
end

--- Waits until a server is ready.
---@param ctx mcp-tools.Ctx in a coroutine
---@param client vim.lsp.Client
---@param bufnr integer that it serves
---@param ms number at most
---@return boolean ready
---@return mcp-tools.lsp.Readiness readiness
function M.wait(ctx, client, bufnr, ms)
  server_state.ensure()
  local over = vim.uv.hrtime() + ms * 1e6
  local function left()
    return (over - vim.uv.hrtime()) / 1e6
  end
  server_state.await(ctx, left(), function()
    return client.initialized or clients.is_stopped(client)
  end)
  local of = server_state.of(client)
  while client.initialized and not clients.is_stopped(client) do
    if of.ready and not server_state.reads(of) and vim.uv.hrtime() > (of.unsettled or 0) then
      return true, { state = 'ready' }
    end
    local quiet = server_state.await(ctx, left(), function()
      if clients.is_stopped(client) then
        return true
      elseif not is_quiet(client) then
        return false
      end
      local silent = vim.uv.hrtime() - math.max(of.since, of.ended_at) > SPEAKS
      return of.ready or of.spoke or of.late or silent or clients.supports(client, PULL, bufnr)
    end)
    if not quiet then
      break
    end
    if not clients.is_stopped(client) then
      of.ready = of.ready
        or of.spoke
        or has_diagnostics(client)
        or answers_pull(ctx, client, bufnr)
        or is_stable(ctx, client, bufnr, over)
    end
    if left() <= 0 or not vim.api.nvim_buf_is_loaded(bufnr) then
      break
    end
  end
  local readiness = M.state(client)
  return readiness.state == 'ready', readiness
end

return M
