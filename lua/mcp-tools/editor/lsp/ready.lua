--- Readiness: whether a language server has read the project, so that its answers are complete.
---
--- Before that, servers answer with nothing or with a part, and no error. A server counts as ready when it reports no
--- progress and has published diagnostics at least once. A server that never publishes is probed until its answers stay
--- the same.

local clients = require('mcp-tools.editor.lsp.clients')
local server_state = require('mcp-tools.editor.lsp.server_state')
local request = require('mcp-tools.editor.lsp.request')
local server_text = require('mcp-tools.editor.lsp.server_text')

local M = {}

--- Servers often begin new work just after they end some: how long there must be none, ns.
local QUIET = 100e6
--- A server that has published nothing about an open file by then never does, ns.
local SPEAKS = 3e9
--- Time between two probes, ms: enough for a server that is still reading to know more.
local PROBE_MS = 300
local PULL = 'textDocument/diagnostic'
--- Number of equal probes in a row.
local PROBES = 3

---@class mcp-tools.lsp.Readiness
---@field state 'starting'|'indexing'|'unsure'|'ready'|'stopped'
---@field title string? of the current work
---@field message string?
---@field percentage number?

--- Returns what is known without asking the server.
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

--- Returns the current work in the words of the server.
---@param readiness mcp-tools.lsp.Readiness
---@return string?
function M.doing(readiness)
  local parts = {}
  for _, each in ipairs({ 'title', 'message' }) do
    table.insert(parts, server_text.text_or_nil(readiness[each]))
  end
  return #parts > 0 and table.concat(parts, ': ') or nil
end

--- Returns the readiness as text: `basedpyright is still indexing, 40 % (12/30 files)`.
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

--- Asks for counts that grow while a server reads: symbols of the file, and references to the first of them.
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
      server_state.active_progress(server_state.of(client))
      or clients.is_stopped(client)
      or not vim.api.nvim_buf_is_loaded(bufnr)
    then
      return false
    elseif server_state.of(client).has_published then
      return true -- a stronger sign than equal answers
    end
    local answer = probe(ctx, client, bufnr)
    same = answer == last and same + 1 or 1
    last = answer
    if same >= PROBES then
      return true
    end
    server_state.await(ctx, PROBE_MS, function()
      return server_state.of(client).has_published
    end)
  end
  return false
end

--- Whether the server had published before we began to listen.
---@param client vim.lsp.Client
---@return boolean
local function has_diagnostics(client)
  local namespaces = { vim.lsp.diagnostic.get_namespace(client.id, false) }
  for _, identifier in ipairs(clients.pull_identifiers(client)) do
    table.insert(namespaces, vim.lsp.diagnostic.get_namespace(client.id, true, identifier or nil))
  end
  return next(vim.diagnostic.count(nil, { namespace = namespaces })) ~= nil -- `get` would copy them
end

--- Whether a server with pull diagnostics answers for a file.
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

--- Whether the server has been ready before: then its answers about one file are complete, even while it works.
---@param client vim.lsp.Client
---@return boolean
function M.was_ready(client)
  return client.initialized and server_state.of(client).ready
end

---@param client vim.lsp.Client
---@return boolean
local function is_quiet(client)
  local state, now = server_state.of(client), vim.uv.hrtime()
  local is_settled = now - state.ended_at > QUIET and now > (state.unsettled_until or 0)
  return is_settled and not server_state.reading_project(state)
end

--- Waits until a server is ready.
---@param ctx mcp-tools.Ctx in a coroutine
---@param client vim.lsp.Client
---@param bufnr integer a buffer of the server
---@param ms number maximum wait
---@return boolean ready
---@return mcp-tools.lsp.Readiness readiness
function M.wait(ctx, client, bufnr, ms)
  server_state.ensure_listening()
  local over = vim.uv.hrtime() + ms * 1e6
  local function left()
    return (over - vim.uv.hrtime()) / 1e6
  end
  server_state.await(ctx, left(), function()
    return client.initialized or clients.is_stopped(client)
  end)
  local state = server_state.of(client)
  while client.initialized and not clients.is_stopped(client) do
    if state.ready and not server_state.reading_project(state) and vim.uv.hrtime() > (state.unsettled_until or 0) then
      return true, { state = 'ready' }
    end
    local quiet = server_state.await(ctx, left(), function()
      if clients.is_stopped(client) then
        return true
      elseif not is_quiet(client) then
        return false
      end
      local silent = vim.uv.hrtime() - math.max(state.since, state.ended_at) > SPEAKS
      return state.ready or state.has_published or state.was_running or silent or clients.supports(client, PULL, bufnr)
    end)
    if not quiet then
      break
    end
    if not clients.is_stopped(client) then
      state.ready = state.ready
        or state.has_published
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
