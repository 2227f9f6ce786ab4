--- State of language servers: published diagnostics, reported progress, and the texts sent to them. Neovim does not
--- record versions of diagnostics and percentages.

local await_until = require('mcp-tools.util.deadline').await_until
local buffers = require('mcp-tools.editor.buffer')
local log = require('mcp-tools.log')
local timer = require('mcp-tools.util.timer')

local M = {}

--- When a file is closed and opened again, some servers publish an empty list within this time, ns.
local CLOSE_NS = 500e6

---@class mcp-tools.lsp.Published a new table for each notification
---@field version integer? of the text; some servers do not send it
---@field at integer ns

---@class mcp-tools.lsp.Sent the text that was last sent to a server
---@field at integer ns
---@field first_at integer ns, when its first text was sent since it was opened
---@field version integer? nil before the first text, and where Neovim has none
---@field reused boolean the version did not increase, so an older text may have the same one
---@field closed boolean
---@field reopened boolean it was closed just before
---@field read boolean? the server has answered a request since

---@class mcp-tools.lsp.ServerState
---@field sent table<string, mcp-tools.lsp.Sent> by file URI
---@field asked table<integer, 'waiting'|'cancelled'> our requests (request.lua) by their id
---@field versioned boolean its diagnostics have versions
---@field since integer ns, start of the server; start of the editor if the server was running before we listened
---@field observed_at integer ns, when we began to listen
---@field first_sent_at integer? ns, when we saw the first text that was sent to it
---@field progress table<any, mcp-tools.lsp.Progress>
---@field announced table<any, integer> token → ns, of progress that has not begun
---@field extension string? extension of the first file that was sent
---@field changed_at integer ns, when a change of a file with that extension was last sent
---@field opened_at integer ns, when a file was last opened, or any text with another extension was last sent
---@field answered_at integer ns, when the latest of our answered requests was sent
---@field ended_at integer ns, when progress last ended
---@field published table<string, mcp-tools.lsp.Published> by file URI
---@field has_published boolean it has published diagnostics, perhaps before we listened
---@field published_at integer ns, when it last published about any file
---@field unsettled_until integer? ns, until when it may still be reading files of which it was notified
---@field ready boolean it has read its project (lsp/init.lua)

---@type table<integer, mcp-tools.lsp.ServerState> by client
local states = {}
---@type table<table, fun()>
local listeners = {}

--- Calls the listeners later, and once for several events: a listener may send requests.
local notify_listeners = timer.soon(function()
  for _, fn in ipairs(vim.tbl_values(listeners)) do
    log.guard('listener for language servers', fn)
  end
end)

--- Calls `fn` after every event of a server.
---@param fn fun()
---@return fun() stop
local function on_event(fn)
  local key = {}
  listeners[key] = fn
  return function()
    listeners[key] = nil
  end
end

--- Prefix of the progress tokens of our own requests, whose progress is ignored.
local OURS = 'mcp-tools:'
--- Announced progress that has not begun within this time is ignored, ns.
local BEGIN_NS = 1e9
--- Progress without an update for this long is dropped, since some servers never send its end; ns.
local PROGRESS_NS = 60e9

---@class mcp-tools.lsp.Progress
---@field title string?
---@field message string?
---@field percentage number?
---@field at integer ns, when it was last updated
---@field begun integer ns
---@field of_change boolean the server is checking a changed text

--- Time in which a server begins to check a changed text, ns.
local CHECK_NS = 2e9
--- Time in which a server begins to read the project of an opened file, ns.
local READ_NS = 1e9

--- Whether work that begins now is the check of a changed text. After a file was opened, the server may also be reading
--- the project, until it answers a later request.
---@param state mcp-tools.lsp.ServerState
---@param now integer ns
---@return boolean
local function is_of_change(state, now)
  local is_settled = now - state.opened_at > READ_NS and now > (state.unsettled_until or 0)
  local is_read = is_settled and state.answered_at > state.opened_at
  return is_read and now - state.changed_at < CHECK_NS
end

--- Handles `$/progress`.
---@param state mcp-tools.lsp.ServerState
---@param params table of `$/progress`
local function on_progress(state, params)
  local token, value = params.token, params.value
  if type(value) ~= 'table' or vim.startswith(tostring(token), OURS) then
    return
  end
  local now = vim.uv.hrtime()
  state.announced[token] = nil
  if value.kind == 'end' then
    if state.progress[token] then
      state.progress[token], state.ended_at = nil, now
    end
  elseif value.kind == 'begin' or state.progress[token] then
    local entry = state.progress[token] or { title = value.title, begun = now, of_change = is_of_change(state, now) }
    entry.message = value.message or entry.message
    entry.percentage = value.percentage or entry.percentage
    entry.at = now
    state.progress[token] = entry
  end
end

--- Handles `window/workDoneProgress/create`.
---@param state mcp-tools.lsp.ServerState
---@param params table of `window/workDoneProgress/create`
local function on_progress_announced(state, params)
  if params.token ~= nil then
    state.announced[params.token] = vim.uv.hrtime()
  end
end

--- Returns the progress that had begun before we listened.
---@param client vim.lsp.Client
---@param now integer ns
---@return table<any, mcp-tools.lsp.Progress>
local function pending_progress(client, now)
  local progress = {}
  for token, title in pairs(client.progress.pending) do
    progress[token] = { title = title, at = now, begun = now, of_change = false }
  end
  return progress
end

---@param entry mcp-tools.lsp.Progress
---@return number
local function percent(entry)
  return entry.percentage or 101
end

--- Returns the active progress entry with the lowest percentage; nil if there is none.
---@param state mcp-tools.lsp.ServerState
---@param without_checks? boolean ignore checks of changed texts
---@return mcp-tools.lsp.Progress?
local function active_progress(state, without_checks)
  local now, found = vim.uv.hrtime(), nil
  for token, entry in pairs(state.progress) do
    if now - entry.at > PROGRESS_NS then
      state.progress[token] = nil
    elseif not (without_checks and entry.of_change) and (not found or percent(entry) < percent(found)) then
      found = entry
    end
  end
  return found
end

--- Returns active progress that may mean that the server is reading the project. If it has read the project before, its
--- checks of changed texts are ignored.
---@param state mcp-tools.lsp.ServerState
---@return mcp-tools.lsp.Progress?
function M.reading_project(state)
  return active_progress(state, state.ready)
end

--- Whether the server is doing work that it began after a time, such as the check of a text that was sent then.
---@param state mcp-tools.lsp.ServerState
---@param since integer ns
---@return boolean
function M.has_begun_work_since(state, since)
  if not active_progress(state) and not next(state.announced) then
    return false
  end
  local now = vim.uv.hrtime()
  for token, at in pairs(state.announced) do
    if now - at > BEGIN_NS then
      state.announced[token] = nil
    elseif at > since then
      return true
    end
  end
  for _, entry in pairs(state.progress) do
    if entry.begun > since then
      return true
    end
  end
  return false
end

local count = 0

--- Returns a token for the progress of one of our requests.
---@return string
function M.token()
  count = count + 1
  return OURS .. count
end

---@type table<string, fun(state: mcp-tools.lsp.ServerState, params: table)>
local HANDLERS = {
  ['$/progress'] = on_progress,
  ['window/workDoneProgress/create'] = on_progress_announced,
  ['textDocument/publishDiagnostics'] = function(state, params)
    local uri = vim.uri_from_fname(vim.uri_to_fname(params.uri))
    local version = type(params.version) == 'number' and params.version or nil
    local sent, now = state.sent[uri], vim.uv.hrtime()
    state.has_published, state.published_at = true, now
    state.versioned = state.versioned or version ~= nil
    local is_empty = not version and type(params.diagnostics) == 'table' and #params.diagnostics == 0
    if is_empty and sent and sent.reopened and not sent.read and now - sent.at < CLOSE_NS then
      if state.versioned then -- this list is of the closed file, the next one of the new text
        sent.reused, state.published[uri] = false, nil
      end
    else
      state.published[uri] = { version = version, at = now }
    end
  end,
}

--- Wraps the client's or Neovim's handler of one method, and calls ours first.
---@param client vim.lsp.Client
---@param state mcp-tools.lsp.ServerState
---@param method string
local function listen(client, state, method)
  local before = client.handlers[method]
  client.handlers[method] = function(err, params, ...)
    if not err and type(params) == 'table' then
      HANDLERS[method](state, params)
    end
    local rest = before or vim.lsp.handlers[method]
    local result = { rest and rest(err, params, ...) }
    notify_listeners()
    return unpack(result, 1, 2)
  end
end

--- Namespace of published diagnostics.
local NAMESPACE = (vim.fn.has('nvim-0.12') == 1 and 'nvim' or 'vim') .. '.lsp.%s.%d'

--- Returns when the editor was started: the modification time of its socket.
---@param now integer ns
---@return integer ns
local function editor_start(now)
  local stat = vim.v.servername ~= '' and vim.uv.fs_stat(vim.v.servername)
  return stat and now - math.max(0, os.time() - stat.mtime.sec) * 1e9 or now
end

--- Returns the state of a server. The first call begins to listen to it.
---@param client vim.lsp.Client
---@param was_running? boolean the server may have been started earlier; default true
---@return mcp-tools.lsp.ServerState
function M.of(client, was_running)
  local state = states[client.id]
  if state then
    return state
  end
  local now = vim.uv.hrtime()
  state = {
    since = was_running == false and now or editor_start(now),
    observed_at = now,
    progress = pending_progress(client, now),
    announced = {},
    ended_at = 0,
    answered_at = 0,
    changed_at = 0,
    opened_at = now,
    published = {},
    published_at = 0,
    sent = {},
    asked = {},
    -- Neovim creates the namespace when a server publishes for the first time.
    has_published = vim.api.nvim_get_namespaces()[NAMESPACE:format(client.name, client.id)] ~= nil,
    versioned = false,
    ready = false,
  }
  states[client.id] = state
  client.handlers = vim.tbl_extend('force', {}, client.handlers or {}) -- the configuration may own the table
  for method in pairs(HANDLERS) do
    listen(client, state, method)
  end
  return state
end

local TEXT_METHODS = {
  ['textDocument/didOpen'] = true,
  ['textDocument/didChange'] = true,
  ['textDocument/didClose'] = true,
}

--- Records that a server has answered a request for diagnostics.
---@param client vim.lsp.Client
---@param uri string
---@param version integer?
function M.note_published(client, uri, version)
  local state = M.of(client)
  state.has_published = true
  state.published[uri] = { version = version, at = vim.uv.hrtime() }
end

--- Records that a text was sent to a server. Neovim 0.10 restarts version numbers when it reads a file again, so two
--- texts may have the same.
---@param state mcp-tools.lsp.ServerState
---@param uri string
---@param is_new_text boolean it was opened or closed, so earlier diagnostics are of another text
---@param version integer? nil: it was closed
local function note_sent(state, uri, is_new_text, version)
  uri = vim.uri_from_fname(vim.uri_to_fname(uri))
  local now, before = vim.uv.hrtime(), state.sent[uri]
  local last = before and before.version
  if version then
    state.first_sent_at = state.first_sent_at or now
    local extension = uri:match('%.([%w_]+)$') or ''
    state.extension = state.extension or extension
    state[(is_new_text or extension ~= state.extension) and 'opened_at' or 'changed_at'] = now
  end
  state.sent[uri] = {
    at = now,
    first_at = not is_new_text and before and before.first_at or now,
    version = version or last,
    reused = version ~= nil and last ~= nil and version <= last,
    closed = is_new_text and not version,
    reopened = version ~= nil and before ~= nil and before.closed,
  }
  if is_new_text then
    state.published[uri] = nil
  end
end

-- Neovim requests the semantic tokens of every buffer when a server attaches to it and after each change. For a hidden
-- buffer, this would delay the answers to tools, even if the request is cancelled. Its tokens are requested when it is
-- shown.

---@param bufnr integer
---@return boolean
local function is_hidden(bufnr)
  return vim.api.nvim_buf_is_loaded(bufnr) and buffers.is_unseen(bufnr)
end

---@param key any identifies one of several callbacks for a buffer
---@param bufnr integer
---@param fn fun()
local function when_seen(key, bufnr, fn)
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = vim.api.nvim_create_augroup(('mcp-tools.semantic_tokens:%s:%d'):format(key, bufnr), { clear = true }),
    buffer = bufnr,
    once = true,
    desc = 'mcp-tools: semantic tokens of a buffer that was hidden',
    callback = fn,
  })
end

--- Postpones the tokens of hidden buffers from now on. From Neovim 0.12 on, `postpone_tokens_of` does it.
local function postpone_tokens()
  local tokens = vim.lsp.semantic_tokens --[[@as table]]
  if tokens.enable then
    return
  end
  local start = tokens.start
  tokens.start = function(bufnr, client_id, ...) -- luacheck: ignore 122
    if type(bufnr) ~= 'number' or not is_hidden(bufnr) then
      return start(bufnr, client_id, ...)
    end
    local opts = ...
    when_seen(client_id, bufnr, function()
      if vim.lsp.buf_is_attached(bufnr, client_id) then
        start(bufnr, client_id, opts)
      end
    end)
  end
end

--- Postpones the tokens of a buffer to which a server has just been attached.
---@param bufnr integer
local function postpone_tokens_of(bufnr)
  local tokens = vim.lsp.semantic_tokens --[[@as table]]
  if tokens.enable and is_hidden(bufnr) and tokens.is_enabled({ bufnr = bufnr }) then
    tokens.enable(false, { bufnr = bufnr })
    when_seen('all', bufnr, function()
      if tokens.is_enabled() then
        tokens.enable(true, { bufnr = bufnr })
      end
    end)
  end
end

local listening = false

--- Begins to listen to all running and future servers. Repeated calls do nothing.
function M.ensure_listening()
  if listening then
    return
  end
  listening = true
  for _, client in ipairs(vim.lsp.get_clients()) do
    M.of(client)
  end
  postpone_tokens()
  local group = vim.api.nvim_create_augroup('mcp-tools.lsp', { clear = true })
  local function on(event, fn)
    vim.api.nvim_create_autocmd(event, {
      group = group,
      desc = 'mcp-tools: observe language servers',
      callback = function(args)
        if type(args.data) == 'table' and args.data.client_id then -- missing with `:doautocmd`
          fn(args.data.client_id, args)
        end
      end,
    })
  end
  on('LspAttach', function(id, args)
    local client = vim.lsp.get_client_by_id(id)
    if client then
      M.of(client, false)
      postpone_tokens_of(args.buf)
    end
    notify_listeners()
  end)
  on('LspNotify', function(id, args)
    local method, document = args.data.method, (args.data.params or {}).textDocument
    if states[id] and TEXT_METHODS[method] then
      note_sent(states[id], document.uri, method ~= 'textDocument/didChange', document.version)
    end
  end)
  on('LspRequest', function(id, args)
    local state, number = states[id], args.data.request_id
    if state and state.asked[number] and args.data.request.type == 'cancel' then
      state.asked[number] = 'cancelled'
    end
  end)
  on('LspDetach', function(id)
    vim.schedule(function() -- the client is still attached during the event
      if not vim.lsp.get_client_by_id(id) then
        states[id] = nil
      end
      notify_listeners()
    end)
  end)
end

--- Interval at which the condition of a wait is checked, ms: some changes cause no event.
local TICK_MS = 20

--- Waits until `condition` returns a true value, and returns it. Ends before the call's deadline.
---@generic T
---@param ctx mcp-tools.Ctx inside a coroutine
---@param ms number
---@param condition fun(): T? must not wait; its errors are raised here
---@return T? value nil: timeout
function M.await(ctx, ms, condition)
  return await_until(ctx, ms, function(check)
    local ticks, stop = timer.every(TICK_MS, check), on_event(check)
    return function()
      ticks:stop()
      stop()
    end
  end, condition)
end

--- Waits for some time.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param ms number
function M.pause(ctx, ms)
  M.await(ctx, ms, function() end)
end

return M
