--- Freshness of diagnostics: whether the servers of a buffer have reported on its current text.
---
--- Servers with pull diagnostics (`textDocument/diagnostic`) are asked. Other servers must publish after they received
--- the text, for the version of the buffer if they send versions, and then be idle. If a server does not publish,
--- nothing may have changed, or it may not have checked the text: its earlier diagnostics are `assumed` to be valid,
--- which never means "no errors". A client that never publishes about a file is ignored after some time.

local clients = require('mcp-tools.editor.lsp.clients')
local log = require('mcp-tools.log')
local server_state = require('mcp-tools.editor.lsp.server_state')
local lsp = require('mcp-tools.editor.lsp')
local request = require('mcp-tools.editor.lsp.request')

local M = {}

--- Quiet time after diagnostics without a usable version, ms: servers publish syntax errors first, then type errors.
local QUIET_MS = 150
--- Diagnostics that a server has sent before the answer to a barrier request arrive within this time after it, ms.
local SETTLE_MS = 80
--- After a change, servers publish for other open files one after the other, at most this far apart, ms.
local REST_MS = 300
--- Number and length (ms) of the rounds after which a silent server is assumed to have nothing new. A busy server
--- answers the barrier request of each round later, so it gets more time.
local ROUNDS, ROUND_MS = 3, 500
--- Time that a client has to publish about a file for the first time, ns. Begins with the first text that it received,
--- or with the first text of the file if it has published about others.
local FIRST_NS = 4e9
--- Barrier requests: cheap ones, whose answer shows that the server has read everything sent before.
local BARRIERS = { 'textDocument/hover', 'textDocument/documentHighlight', 'textDocument/documentSymbol' }
local PULL = 'textDocument/diagnostic'
local CLOSED = 'the buffer was closed'
local CHANGED = 'the text has changed since the servers were asked'

---@alias mcp-tools.diagnostics.Checked 'yes'|'assumed'|'no'

---@param bufnr integer
---@return string
local function uri_of(bufnr)
  return vim.uri_from_bufnr(bufnr)
end

--- Returns the version of the current text.
---@param bufnr integer
---@return integer?
local function version_of(bufnr)
  return vim.lsp.util.buf_versions[bufnr]
end

---@param client vim.lsp.Client
---@param bufnr integer
---@return boolean
local function can_pull(client, bufnr)
  return clients.supports(client, PULL, bufnr)
end

--- Whether a client has published nothing about a file although it had time to: it may only provide completion.
---@param client vim.lsp.Client
---@param bufnr integer
---@return boolean
local function is_silent(client, bufnr)
  local state, uri = server_state.of(client), uri_of(bufnr)
  if state.published[uri] or can_pull(client, bufnr) then
    return false
  end
  local sent = state.sent[uri]
  local since = state.has_published and sent and sent.first_at or state.first_sent_at or state.observed_at
  return vim.uv.hrtime() - since > FIRST_NS and not server_state.has_begun_work_since(state, since)
end

--- Whether the latest diagnostics of a server are of the current text.
---@param client vim.lsp.Client
---@param bufnr integer
---@return boolean
local function is_fresh(client, bufnr)
  local state, uri = server_state.of(client), uri_of(bufnr)
  local published, sent, version = state.published[uri], state.sent[uri], version_of(bufnr) or 0
  if not published or state.versioned and not published.version then
    return false -- such as the empty list for a file that was closed to open it again
  elseif sent and ((sent.version or -1) < version or published.at <= sent.at) then
    return false -- the change has not been sent, or nothing was published since
  end
  return not published.version or published.version >= math.max(version, sent and sent.version or 0)
end

--- Returns whether the servers have checked the current text, without asking them.
---@param bufnr integer
---@return 'yes'|'stale'|'unknown'
function M.state(bufnr)
  local checked, all = false, true
  local changed = vim.api.nvim_buf_get_changedtick(bufnr)
  for _, client in ipairs(clients.of(bufnr)) do
    if not is_silent(client, bufnr) then
      checked = checked or server_state.of(client).published[uri_of(bufnr)] ~= nil
      all = all and is_fresh(client, bufnr) and (version_of(bufnr) or changed) == changed
    end
  end
  if not checked then
    return 'unknown'
  end
  return all and 'yes' or 'stale'
end

--- Waits until a server has read everything sent to it.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param ms number
local function barrier(ctx, client, bufnr, ms)
  for _, method in ipairs(ms > 0 and BARRIERS or {}) do
    if clients.supports(client, method, bufnr) then
      local params = { textDocument = { uri = uri_of(bufnr) }, position = { line = 0, character = 0 } }
      local _, err = request.ask(ctx, client, method, params, bufnr, ms)
      local sent = server_state.of(client).sent[params.textDocument.uri]
      if sent and (not err or err.code ~= 'timeout') then
        sent.read = true
      end
      return
    end
  end
end

--- Requests diagnostics, once for each registration: Neovim stores them separately.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param deadline integer ns
---@return mcp-tools.diagnostics.Checked
---@return string? why
local function pull(ctx, client, bufnr, deadline)
  local version, handler = version_of(bufnr), vim.lsp.handlers[PULL]
  for _, identifier in ipairs(clients.pull_identifiers(client, bufnr)) do
    local params = { textDocument = { uri = uri_of(bufnr) }, identifier = identifier or nil }
    local ms = (deadline - vim.uv.hrtime()) / 1e6
    local report, err = request.ask(ctx, client, PULL, params, bufnr, math.max(ms, 1))
    if not report then
      return 'no', err and err.message or ('%s did not answer'):format(client.name)
    elseif not vim.api.nvim_buf_is_loaded(bufnr) then
      return 'no', CLOSED
    elseif handler and report.kind == 'full' then
      local at = { client_id = client.id, bufnr = bufnr, method = PULL, params = params }
      log.guard('diagnostics of a server', handler, nil, report, at)
    end
  end
  server_state.note_published(client, uri_of(bufnr), version)
  return 'yes'
end

--- Waits until a server has published for the text and is idle.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param deadline integer ns
---@return mcp-tools.diagnostics.Checked
---@return string? why
local function push(ctx, client, bufnr, deadline)
  local state, uri, silent = server_state.of(client), uri_of(bufnr), 0
  local function left()
    return (deadline - vim.uv.hrtime()) / 1e6
  end
  local function is_closed()
    return clients.is_stopped(client) or not vim.api.nvim_buf_is_loaded(bufnr)
  end
  local function is_working()
    local sent = state.sent[uri]
    return server_state.has_begun_work_since(state, sent and sent.at or 0)
  end
  local function is_versioned()
    local published, sent = state.published[uri], state.sent[uri]
    return published ~= nil and published.version ~= nil and not (sent and sent.reused)
  end
  local function is_quiet()
    local published = state.published[uri]
    local is_over = published and (is_versioned() or vim.uv.hrtime() - published.at > QUIET_MS * 1e6)
    return is_closed() or is_over and not is_working()
  end
  barrier(ctx, client, bufnr, left()) -- also sends a change that Neovim has delayed
  -- The server may still be reading new and deleted files that affect the diagnostics of this one.
  server_state.await(ctx, math.min(left(), ((state.unsettled_until or 0) - vim.uv.hrtime()) / 1e6), is_closed)
  while left() > 0 and not is_closed() do
    local fresh = server_state.await(ctx, math.min(left(), ROUND_MS), function()
      return is_closed() or is_fresh(client, bufnr) or can_pull(client, bufnr)
    end)
    if can_pull(client, bufnr) then -- it registered for pull diagnostics in the meantime
      return pull(ctx, client, bufnr, deadline)
    elseif fresh then
      silent = 0
      server_state.await(ctx, left(), is_quiet)
    else
      silent = is_working() and 0 or silent + 1
    end
    local before = state.published[uri]
    if not is_closed() then
      barrier(ctx, client, bufnr, left())
    end
    if is_closed() then
      break
    elseif
      fresh
      and not server_state.await(ctx, is_versioned() and 0 or math.min(left(), SETTLE_MS), function()
        return is_closed() or state.published[uri] ~= before or is_working()
      end)
      and is_fresh(client, bufnr)
    then
      return 'yes'
    elseif
      not is_fresh(client, bufnr)
      and silent >= ROUNDS
      and (state.published[uri] or not state.sent[uri] or is_silent(client, bufnr))
    then
      local text = '%s has published nothing since the change; earlier diagnostics are assumed to be valid'
      return 'assumed', text:format(client.name)
    end
  end
  if clients.is_stopped(client) then
    return 'no', ('%s has stopped'):format(client.name)
  elseif not vim.api.nvim_buf_is_loaded(bufnr) then
    return 'no', CLOSED
  end
  if is_fresh(client, bufnr) and is_quiet() then
    return 'yes'
  end
  local indexing = lsp.why_indexing(client)
  if indexing then
    return 'no', indexing
  elseif is_fresh(client, bufnr) then
    return 'no', ('%s is still working'):format(client.name)
  end
  local text = state.published[uri] and '%s has not published diagnostics of the current text'
    or '%s has not published diagnostics of this file'
  return 'no', text:format(client.name)
end

--- Waits until servers have reported on open files other than the edited ones.
---@param ctx mcp-tools.Ctx
---@param list vim.lsp.Client[]
---@param others integer[] loaded buffers of the servers
---@param ms number maximum wait
function M.wait_for_others(ctx, list, others, ms)
  local begun = vim.uv.hrtime()
  local deadline = begun + ms * 1e6
  for _, client in ipairs(list) do
    for _, bufnr in ipairs(others) do
      local is_served = vim.api.nvim_buf_is_loaded(bufnr) and client.attached_buffers[bufnr]
      if is_served and can_pull(client, bufnr) and vim.uv.hrtime() < deadline then
        pull(ctx, client, bufnr, deadline)
      end
    end
  end
  server_state.await(ctx, (deadline - vim.uv.hrtime()) / 1e6, function()
    local now = vim.uv.hrtime()
    for _, client in ipairs(list) do
      local state = server_state.of(client)
      local last = math.max(state.published_at, begun)
      local is_asked, since = clients.supports(client, PULL), begun - REST_MS * 1e6
      if not is_asked and (now - last < REST_MS * 1e6 or server_state.has_begun_work_since(state, since)) then
        return false
      end
    end
    return true
  end)
end

--- Whether a client may have published about a file: it has published before, or the file was sent before we listened.
---@param client vim.lsp.Client
---@param bufnr integer
---@return boolean
local function may_have_published(client, bufnr)
  local state = server_state.of(client)
  return state.has_published or not state.sent[uri_of(bufnr)]
end

--- Returns the clients that may report on a buffer: silent ones only if there is no other.
---@param list vim.lsp.Client[]
---@param bufnr integer
---@return vim.lsp.Client[]
local function reporting(list, bufnr)
  local active = vim.tbl_filter(function(client)
    return not is_silent(client, bufnr)
  end, list)
  return #active > 0 and active
    or vim.tbl_filter(function(client)
      return may_have_published(client, bufnr)
    end, list)
end

--- The result of several servers is the one with the highest rank.
local RANK = { yes = 1, assumed = 2, no = 3 }

--- Waits until the servers of a buffer have reported on its text.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param bufnr integer loaded
---@param list vim.lsp.Client[]
---@param ms number maximum wait
---@return mcp-tools.diagnostics.Checked checked
---@return string? why nil if `yes`
function M.wait(ctx, bufnr, list, ms)
  local deadline = vim.uv.hrtime() + ms * 1e6
  while true do
    local version, worst, why = version_of(bufnr), nil, nil
    local function note(checked, reason)
      if not worst or RANK[checked] > RANK[worst] then
        worst, why = checked, reason
      end
    end
    local fallback
    for _, client in ipairs(reporting(list, bufnr)) do
      if not vim.api.nvim_buf_is_loaded(bufnr) then
        return 'no', CLOSED
      end
      local checked, reason
      if can_pull(client, bufnr) then
        if not lsp.was_ready(client) then
          lsp.await_ready(ctx, client, bufnr, (deadline - vim.uv.hrtime()) / 1e6)
        end
        checked, reason = pull(ctx, client, bufnr, deadline)
      else
        checked, reason = push(ctx, client, bufnr, deadline)
      end
      if checked ~= 'assumed' or server_state.of(client).published[uri_of(bufnr)] then
        note(checked, reason)
      elseif may_have_published(client, bufnr) then
        fallback = reason
      end
    end
    if fallback and not worst then
      worst, why = 'assumed', fallback
    end
    if not worst then
      local names = vim.tbl_map(function(client)
        return client.name
      end, list)
      return 'no', ('%s never published diagnostics'):format(table.concat(names, ', '))
    elseif worst ~= 'yes' or version_of(bufnr) == version then
      return worst, why
    elseif vim.uv.hrtime() > deadline then
      return 'no', CHANGED -- the servers have checked different texts
    end
  end
end

return M
