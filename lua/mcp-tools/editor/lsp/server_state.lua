--- State of language servers: what they publish, the work that they report (`$/progress`), and which texts they have
--- been sent. Neovim's own record has no versions of diagnostics and no percentages of progress.

local await_until = require('mcp-tools.util.await_until')
local log = require('mcp-tools.log')
local semantic_tokens = require('mcp-tools.editor.lsp.semantic_tokens')
local timer = require('mcp-tools.util.timer')

local M = {}

--- A file that is read again is closed first, about which some servers publish an empty list within this; ns.
local CLOSES = 500e6

---@class mcp-tools.lsp.Published a new table for each message
---@field version integer? of the text; few servers leave it out
---@field at integer ns

---@class mcp-tools.lsp.Sent the text that a server received last
---@field at integer ns
---@field version integer? nil before the first text, and where the editor counts none
---@field reused boolean the number did not grow: an older text may have had it, too
---@field closed boolean
---@field reopened boolean it was closed just before
---@field read boolean? the server has answered a question since

---@class mcp-tools.lsp.Heard
---@field sent table<string, mcp-tools.lsp.Sent> by file URI
---@field asked table<integer, 'waiting'|'cancelled'> questions of ours (request.lua) by the number of the request
---@field versioned boolean it says of which version of a text it speaks
---@field since integer ns
---@field late boolean the client was there before anybody listened
---@field progress table<any, mcp-tools.lsp.Progress>
---@field announced table<any, integer> token → ns, of progress that is to begin
---@field kind string? extension of the first file that it was told of
---@field changed_at integer ns, when it was last told of a changed text of that kind
---@field opened_at integer ns, when it was last told of another file, or of one of another kind
---@field answered_at integer ns, when the last question of ours that it has answered was asked
---@field ended_at integer ns, when the last one of them ended
---@field published table<string, mcp-tools.lsp.Published> by file URI
---@field spoke boolean it has published something since
---@field published_at integer ns, when it last published about any file
---@field silent boolean it has published nothing about a text that it received (diagnostics/fresh.lua)
---@field silent_about table<string, true> the same, by file URI
---@field unsettled integer? ns, until when it may not have looked at files that it was told of
---@field ready boolean set by ready.lua

---@type table<integer, mcp-tools.lsp.Heard> by client
local heard = {}
---@type table<table, fun()>
local listeners = {}

local telling = false

--- Later, and once for what comes at once: whoever listens may go on to ask the server.
local function tell()
  if telling then
    return
  end
  telling = true
  vim.schedule(function()
    telling = false
    for _, fn in ipairs(vim.tbl_values(listeners)) do
      log.guard('who hears of language servers', fn)
    end
  end)
end

--- Calls `fn` at any news, until what it returns is called.
---@param fn fun()
---@return fun() stop
function M.on_news(fn)
  local key = {}
  listeners[key] = fn
  return function()
    listeners[key] = nil
  end
end

--- Progress of our own requests is marked so; it says nothing about the server.
local OURS = 'mcp-tools:'
--- Progress that is announced begins by then, or never, ns.
local BEGINS = 1e9
--- Progress that was not updated for so long is dropped (the server never sent its end), ns.
local FORGOTTEN = 60e9

---@class mcp-tools.lsp.Progress
---@field title string?
---@field message string?
---@field percentage number?
---@field at integer ns, when it was last heard of
---@field begun integer ns
---@field of_change boolean a changed text has set it off

--- A server that looks at a changed text begins by then, ns.
local LOOKS = 2e9
--- A server that reads the project of a file that was opened begins by then, or when it has answered a question that
--- was asked later; ns.
local READS = 1e9

--- Is work that begins now about a text that was changed, and not about files of which the server has learned?
---@param of mcp-tools.lsp.Heard
---@param now integer ns
---@return boolean
local function is_of_change(of, now)
  local is_read = of.answered_at > of.opened_at and now - of.opened_at > READS and now > (of.unsettled or 0)
  return is_read and now - of.changed_at < LOOKS
end

--- A server says something of its work.
---@param of mcp-tools.lsp.Heard
---@param params table of `$/progress`
local function take_progress(of, params)
  local token, value = params.token, params.value
  if type(value) ~= 'table' or vim.startswith(tostring(token), OURS) then
    return
  end
  local now = vim.uv.hrtime()
  of.announced[token] = nil
  if value.kind == 'end' then
    if of.progress[token] then
      of.progress[token], of.ended_at = nil, now
    end
  elseif value.kind == 'begin' or of.progress[token] then
    local entry = of.progress[token] or { title = value.title, begun = now, of_change = is_of_change(of, now) }
    entry.message = value.message or entry.message
    entry.percentage = value.percentage or entry.percentage
    entry.at = now
    of.progress[token] = entry
  end
end

--- A server is about to begin something.
---@param of mcp-tools.lsp.Heard
---@param params table of `window/workDoneProgress/create`
local function announce_progress(of, params)
  if params.token ~= nil then
    of.announced[params.token] = vim.uv.hrtime()
  end
end

--- What a server is at that was there before anybody listened.
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

--- What the server is at, the slowest first to name: nil when it is at nothing.
---@param of mcp-tools.lsp.Heard
---@param reading? boolean without what a changed text has set off
---@return mcp-tools.lsp.Progress?
function M.busy(of, reading)
  local now, found = vim.uv.hrtime(), nil
  for token, entry in pairs(of.progress) do
    if now - entry.at > FORGOTTEN then
      of.progress[token] = nil
    elseif not (reading and entry.of_change) and (not found or percent(entry) < percent(found)) then
      found = entry
    end
  end
  return found
end

--- What the server is at that may be the reading of the project. One that has read it answers from the text that it was
--- told of last, whatever else it makes of a change; it is not waited for.
---@param of mcp-tools.lsp.Heard
---@return mcp-tools.lsp.Progress?
function M.reads(of)
  return M.busy(of, of.ready)
end

--- Has it begun some work since then that it has not ended? It may be about what it was told then.
---@param of mcp-tools.lsp.Heard
---@param since integer ns
---@return boolean
function M.works_since(of, since)
  if not M.busy(of) and not next(of.announced) then
    return false
  end
  local now = vim.uv.hrtime()
  for token, at in pairs(of.announced) do
    if now - at > BEGINS then
      of.announced[token] = nil
    elseif at > since then
      return true
    end
  end
  for _, entry in pairs(of.progress) do
    if entry.begun > since then
      return true
    end
  end
  return false
end

local count = 0

--- A token for the progress of a request of ours.
---@return string
function M.token()
  count = count + 1
  return OURS .. count
end

---@type table<string, fun(of: mcp-tools.lsp.Heard, params: table)>
local TAKE = {
  ['$/progress'] = take_progress,
  ['window/workDoneProgress/create'] = announce_progress,
  ['textDocument/publishDiagnostics'] = function(of, params)
    local uri = vim.uri_from_fname(vim.uri_to_fname(params.uri))
    local version = type(params.version) == 'number' and params.version or nil
    local sent, now = of.sent[uri], vim.uv.hrtime()
    of.spoke, of.published_at, of.silent_about[uri] = true, now, nil
    of.versioned = of.versioned or version ~= nil
    local is_empty = not version and type(params.diagnostics) == 'table' and #params.diagnostics == 0
    if is_empty and sent and sent.reopened and not sent.read and now - sent.at < CLOSES then
      if of.versioned then -- it has read that the file was closed, so what it publishes from now on is of the new text
        sent.reused, of.published[uri] = false, nil
      end
    else
      of.published[uri] = { version = version, at = now }
    end
  end,
}

--- Listens in on one kind of message: the client's own handlers come before the editor's.
---@param client vim.lsp.Client
---@param of mcp-tools.lsp.Heard
---@param method string
local function listen(client, of, method)
  local before = client.handlers[method]
  client.handlers[method] = function(err, params, ...)
    if not err and type(params) == 'table' then
      TAKE[method](of, params)
    end
    local rest = before or vim.lsp.handlers[method]
    local result = { rest and rest(err, params, ...) }
    tell()
    return unpack(result, 1, 2)
  end
end

--- What a server has said since somebody listens, which is from now on at the latest.
---@param client vim.lsp.Client
---@param late? boolean default true
---@return mcp-tools.lsp.Heard
function M.of(client, late)
  local of = heard[client.id]
  if of then
    return of
  end
  local now = vim.uv.hrtime()
  of = {
    since = now,
    late = late ~= false,
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
    spoke = false,
    silent = false,
    silent_about = {},
    versioned = false,
    ready = false,
  }
  heard[client.id] = of
  client.handlers = vim.tbl_extend('force', {}, client.handlers or {}) -- the table may be one of the configuration
  for method in pairs(TAKE) do
    listen(client, of, method)
  end
  return of
end

local SENDS = {
  ['textDocument/didOpen'] = true,
  ['textDocument/didChange'] = true,
  ['textDocument/didClose'] = true,
}

--- Records that a server has reported on a version of a text when it was asked.
---@param client vim.lsp.Client
---@param uri string
---@param version integer?
function M.note_published(client, uri, version)
  local of = M.of(client)
  of.spoke = true
  of.published[uri] = { version = version, at = vim.uv.hrtime() }
end

--- Records that a server was sent a text just now. Neovim 0.10 counts from the start whenever it reads a file again, so
--- that the same number may belong to two texts.
---@param of mcp-tools.lsp.Heard
---@param uri string
---@param anew boolean what it said before is of another text
---@param version integer? none: it was closed
function M.note_sent(of, uri, anew, version)
  uri = vim.uri_from_fname(vim.uri_to_fname(uri))
  local now, before = vim.uv.hrtime(), of.sent[uri]
  local last = before and before.version
  if version then
    local kind = uri:match('%.([%w_]+)$') or ''
    of.kind = of.kind or kind
    of[(anew or kind ~= of.kind) and 'opened_at' or 'changed_at'] = now
  end
  of.sent[uri] = {
    at = now,
    version = version or last,
    reused = version ~= nil and last ~= nil and version <= last,
    closed = anew and not version,
    reopened = version ~= nil and before ~= nil and before.closed,
  }
  if anew then
    of.published[uri] = nil
  end
end

--- Whom an event is about. Others set events off by hand (`:doautocmd`), which then say nothing.
---@param args { data: any }
---@return integer?
local function client_of(args)
  return type(args.data) == 'table' and args.data.client_id or nil
end

--- Listens to every server, also to those that are still to come.
function M.listen()
  for _, client in ipairs(vim.lsp.get_clients()) do
    M.of(client)
  end
  semantic_tokens.listen()
  local group = vim.api.nvim_create_augroup('mcp-tools.lsp', { clear = true })
  vim.api.nvim_create_autocmd('LspAttach', {
    group = group,
    desc = 'mcp-tools: what language servers say',
    callback = function(args)
      local id = client_of(args)
      local client = id and vim.lsp.get_client_by_id(id)
      if client then
        M.of(client, false)
        semantic_tokens.attached(args.buf)
      end
      tell()
    end,
  })
  vim.api.nvim_create_autocmd('LspNotify', {
    group = group,
    desc = 'mcp-tools: what language servers are told',
    callback = function(args)
      local id = client_of(args)
      local of, params = id and heard[id], id and args.data.params
      if of and params and SENDS[args.data.method] then
        local document = params.textDocument
        M.note_sent(of, document.uri, args.data.method ~= 'textDocument/didChange', document.version)
      end
    end,
  })
  vim.api.nvim_create_autocmd('LspRequest', {
    group = group,
    desc = 'mcp-tools: requests to language servers that somebody else cancels',
    callback = function(args)
      local id = client_of(args)
      local of, number = id and heard[id], id and args.data.request_id
      if of and of.asked[number] and args.data.request.type == 'cancel' then
        of.asked[number] = 'cancelled'
      end
    end,
  })
  vim.api.nvim_create_autocmd('LspDetach', {
    group = group,
    desc = 'mcp-tools: what language servers say',
    callback = function(args)
      local id = client_of(args)
      vim.schedule(function() -- it is attached to that buffer until then
        if id and not vim.lsp.get_client_by_id(id) then
          heard[id] = nil
        end
        tell()
      end)
    end,
  })
end

local listening = false

--- Begins to listen when nobody does yet.
function M.ensure()
  if not listening then
    listening = true
    M.listen()
  end
end

--- The condition of a wait is also looked at this often, since servers do not say everything; ms.
local TICK_MS = 20

--- Waits until `condition` returns something true, and returns that. It ends before the call's time does.
---@generic T
---@param ctx mcp-tools.Ctx in a coroutine
---@param ms number
---@param condition fun(): T? must not wait; what it throws is thrown here
---@return T? value nil: the time is over
function M.await(ctx, ms, condition)
  return await_until(ctx, ms, function(look)
    local ticks, stop = timer.every(TICK_MS, look), M.on_news(look)
    return function()
      ticks:stop()
      stop()
    end
  end, condition)
end

--- Lets some time pass.
---@param ctx mcp-tools.Ctx in a coroutine
---@param ms number
function M.pause(ctx, ms)
  M.await(ctx, ms, function() end)
end

return M
