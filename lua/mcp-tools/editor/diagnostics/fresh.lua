--- Fresh diagnostics: has every server of a buffer spoken about the text that it has now?
---
--- Receives: a buffer; what servers have said and been told (lsp/notifications.lua).
--- Sends: yes, or why that cannot be said; never yes by time alone where a server tells versions.
--- Does not know about: what the diagnostics are.
---
--- A server that can be asked for diagnostics is asked. Of the others most say for which version they speak. The rest
--- must have spoken after they were told of the text, and then be quiet and at rest (lsp/busy.lua). One that has
--- nothing new may stay silent, so it is told of the text as of one just opened, about which each must speak.

local busy = require('mcp-tools.editor.lsp.busy')
local clients = require('mcp-tools.editor.lsp.clients')
local notifications = require('mcp-tools.editor.lsp.notifications')
local progress = require('mcp-tools.editor.lsp.progress')
local ready = require('mcp-tools.editor.lsp.ready')
local request = require('mcp-tools.editor.lsp.request')
local wait = require('mcp-tools.editor.lsp.wait')

local M = {}

--- Servers without versions speak of syntax, then of types, in one go; in a file that they do not know yet the latter
--- takes its time. ms
local QUIET_MS, QUIET_ANEW_MS = 250, 600
--- After so many times it is known how long a server pauses in a file.
local KNOWN = 3
--- What such a server had thought of the text before may still follow for so long, ns.
local OLD = 100e6
--- What was sent so long ago may not have been read when the wait begins, ns.
local RECENT = 500e6
--- So long a server may be silent before it is told again, ms; or twice as long as it took before.
local SILENT_MS = 800
--- Cheap questions; the answer says that what was sent before has been read.
local BARRIERS = { 'textDocument/hover', 'textDocument/documentHighlight', 'textDocument/documentSymbol' }
local PULL = 'textDocument/diagnostic'
local CLOSED = 'the buffer has been closed'
local CHANGED = 'the text has changed while servers looked at it'

---@param bufnr integer
---@return string
local function uri_of(bufnr)
  return vim.uri_from_bufnr(bufnr)
end

--- Version of the text that servers were last told.
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

--- So long a server without versions must have been silent to have said all.
---@param of mcp-tools.lsp.Heard
---@param uri string
---@param anew boolean
---@return number ms
local function quiet_of(of, uri, anew)
  local pace = of.pace[uri]
  if anew and (not pace or pace.bursts < KNOWN) then
    return QUIET_ANEW_MS
  end
  return math.min(math.max(QUIET_MS, 2 * (pace and pace.gap or 0)), QUIET_ANEW_MS)
end

--- Has a server without versions spoken since it was told of the text?
---@param client vim.lsp.Client
---@param uri string
---@return boolean spoke
---@return boolean quiet and finished
local function has_spoken(client, uri)
  local of = notifications.of(client)
  local published, sent = of.published[uri], of.sent[uri]
  if not published or of.versioned then
    return false, false
  end
  local anew = sent ~= nil and sent.anew
  -- When a file is read again it is closed first, about which some servers speak as well.
  local since = sent and math.max(sent.at + (anew and 0 or OLD), sent.read_at or 0) or 0
  local silent = (vim.uv.hrtime() - published.at) / 1e6
  return published.at > since, silent > quiet_of(of, uri, anew)
end

--- Is what a server has said of the text that the buffer has now?
---@param client vim.lsp.Client
---@param bufnr integer
---@return boolean
local function is_fresh(client, bufnr)
  local uri = uri_of(bufnr)
  local published, sent = notifications.of(client).published[uri], notifications.of(client).sent[uri]
  if published and published.version then
    local version = math.max(version_of(bufnr) or 0, sent and sent.version or 0)
    return published.version >= version and not (sent and sent.again)
  end
  local spoke, quiet = has_spoken(client, uri)
  return spoke and quiet
end

--- Has any server looked at the text that a buffer has now?
---@param bufnr integer
---@return 'yes'|'stale'|'unknown'
function M.state(bufnr)
  local list, looked, all = clients.of(bufnr), false, true
  local changed = vim.api.nvim_buf_get_changedtick(bufnr)
  for _, client in ipairs(list) do
    local of = notifications.of(client)
    local mute = of.ready and not of.spoke and not of.late
    if not mute or #list == 1 then
      looked = looked or of.published[uri_of(bufnr)] ~= nil
      all = all and is_fresh(client, bufnr) and (version_of(bufnr) or changed) == changed
    end
  end
  if #list == 0 or not looked then
    return 'unknown'
  end
  return all and 'yes' or 'stale'
end

--- Has what was sent to a server been read?
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param ms number
local function barrier(ctx, client, bufnr, ms)
  for _, method in ipairs(BARRIERS) do
    if clients.supports(client, method, bufnr) then
      local params = { textDocument = { uri = uri_of(bufnr) }, position = { line = 0, character = 0 } }
      request.ask(ctx, client, method, params, bufnr, math.max(ms, 1))
      return
    end
  end
end

--- Tells a server of the text as of one that is opened now.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param ms number
local function tell_again(ctx, client, bufnr, ms)
  local uri, document = uri_of(bufnr), { uri = uri_of(bufnr) }
  clients.notify(client, 'textDocument/didClose', { textDocument = document })
  barrier(ctx, client, bufnr, ms)
  if clients.is_stopped(client) or not vim.api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local ends = vim.bo[bufnr].endofline or vim.bo[bufnr].fixendofline
  local version = version_of(bufnr) or 0
  local numbers = notifications.of(client).numbers[uri] or {}
  while numbers[version] do
    version = version + 1 -- one that stands for no other text
  end
  clients.notify(client, 'textDocument/didOpen', {
    textDocument = {
      uri = uri,
      languageId = client.get_language_id and client.get_language_id(bufnr, vim.bo[bufnr].filetype)
        or vim.bo[bufnr].filetype,
      version = version,
      text = table.concat(lines, '\n') .. (ends and '\n' or ''),
    },
  })
  -- What is heard of it from the editor comes a little later.
  wait.until_(ctx, ms, function()
    local sent = notifications.of(client).sent[uri]
    return sent and sent.version == version and not sent.again
  end)
end

---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param over integer ns
---@return string? why it is not fresh
local function pull(ctx, client, bufnr, over)
  local ms = (over - vim.uv.hrtime()) / 1e6
  local params, version = { textDocument = { uri = uri_of(bufnr) } }, version_of(bufnr)
  local report, err = request.ask(ctx, client, PULL, params, bufnr, math.max(ms, 1))
  if not report then
    return err and err.message or ('%s has not answered'):format(client.name)
  elseif not vim.api.nvim_buf_is_loaded(bufnr) then
    return CLOSED
  end
  local handler = vim.lsp.handlers[PULL]
  if handler and report.kind == 'full' then
    handler(nil, report, { client_id = client.id, bufnr = bufnr, method = PULL, params = params })
  end
  local of, uri = notifications.of(client), uri_of(bufnr)
  of.spoke = true
  of.published[uri] = { version = version, count = 1, at = vim.uv.hrtime() }
end

--- Has a server that tells versions said all of the text? When it runs out of time between two files it says what it
--- has so far, by the version of the new text, and goes on: it begins work (which it announces at once), or says more.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param uri string its own, also when it has been closed
---@param left fun(): number ms
---@param fresh fun(): boolean
---@return boolean
local function is_over(ctx, client, bufnr, uri, left, fresh)
  local of = notifications.of(client)
  while left() > 0 and vim.api.nvim_buf_is_loaded(bufnr) and not clients.is_stopped(client) do
    local before, sent = of.published[uri], of.sent[uri]
    local since = sent and sent.at or 0
    barrier(ctx, client, bufnr, left())
    local idle = wait.until_(ctx, left(), function()
      return not progress.works_since(of, since) or clients.is_stopped(client)
    end)
    if not idle or not wait.until_(ctx, left(), fresh) then
      return false
    elseif of.published[uri] == before then
      return true
    end
  end
  return false
end

---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param over integer ns
---@return string? why it is not fresh
local function push(ctx, client, bufnr, over)
  local function left()
    return (over - vim.uv.hrtime()) / 1e6
  end
  local of, begun, uri = notifications.of(client), vim.uv.hrtime(), uri_of(bufnr)
  busy.is(client) -- a first look, with which later ones are compared
  barrier(ctx, client, bufnr, left())
  -- What it has just been told of files that came or went may change what it thinks of this one.
  wait.until_(ctx, math.min(left(), ((of.unsettled or 0) - vim.uv.hrtime()) / 1e6), function() end)
  local function fresh()
    return not vim.api.nvim_buf_is_loaded(bufnr)
      or clients.is_stopped(client)
      or is_fresh(client, bufnr) and (of.versioned or not busy.is(client))
  end
  local sent = of.sent[uri]
  if sent and begun - sent.at < RECENT then
    sent.read_at = vim.uv.hrtime()
  end
  if sent and sent.again and of.versioned and left() > 0 then
    tell_again(ctx, client, bufnr, left())
    sent = of.sent[uri]
  end
  local silent = (sent and sent.at or begun) + math.max(SILENT_MS, 2 * of.slowest) * 1e6
  wait.until_(ctx, left(), function()
    return fresh() or has_spoken(client, uri) or vim.uv.hrtime() > silent and not busy.is(client)
  end)
  if not fresh() and not has_spoken(client, uri) and not progress.busy(of) and left() > 0 then
    tell_again(ctx, client, bufnr, left())
  end
  wait.until_(ctx, left(), fresh)
  local working = of.versioned and not is_over(ctx, client, bufnr, uri, left, fresh)
  if clients.is_stopped(client) then
    return ('%s has stopped'):format(client.name)
  elseif not vim.api.nvim_buf_is_loaded(bufnr) then
    return CLOSED
  elseif not is_fresh(client, bufnr) then
    local state = ready.state(client)
    local said = of.published[uri] and '%s has not yet spoken about the text as it is now'
      or '%s has not spoken about this file'
    return state.state == 'indexing' and ready.text(client, state) or said:format(client.name)
  elseif working then
    return ready.text(client, ready.state(client))
  elseif not of.versioned and busy.is(client) then
    return ('%s is still at work'):format(client.name)
  end
end

--- Waits until every server of a buffer has spoken about its text.
---@param ctx mcp-tools.Ctx in a coroutine
---@param bufnr integer loaded
---@param list vim.lsp.Client[]
---@param ms number at most
---@return boolean fresh
---@return string? why not
function M.wait(ctx, bufnr, list, ms)
  local over = vim.uv.hrtime() + ms * 1e6
  while true do
    local version = version_of(bufnr)
    local whys, spoke = {}, false
    for _, client in ipairs(list) do
      if not vim.api.nvim_buf_is_loaded(bufnr) then
        return false, CLOSED
      elseif not ready.was_ready(client) then
        ready.wait(ctx, client, bufnr, (over - vim.uv.hrtime()) / 1e6)
      end
      local of = notifications.of(client)
      local mute = of.ready and not of.spoke and not of.late and #list > 1 and not can_pull(client, bufnr)
      if not mute then
        local why = (can_pull(client, bufnr) and pull or push)(ctx, client, bufnr, over)
        table.insert(whys, why)
        spoke = spoke or why == nil
      end
    end
    if #whys > 0 or not spoke then
      return false, whys[1]
    elseif version_of(bufnr) == version then
      return true
    elseif vim.uv.hrtime() > over then
      return false, CHANGED -- one server has looked at the text before, another at that of now
    end
  end
end

return M
