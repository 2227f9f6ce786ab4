--- Notifications of language servers: what they say by themselves, and what they are told of texts.
---
--- Receives: `textDocument/publishDiagnostics` and `$/progress` of every client, which go on to who had them before;
--- word of what the editor sends.
--- Sends: when a server last spoke about a file, and of which version; a word to whoever waits for news.
--- Does not know about: what follows from it (ready.lua, diagnostics/fresh.lua), what progress says (progress.lua).
---
--- Neovim's own record has no versions of diagnostics.

local highlights = require('mcp-tools.editor.lsp.highlights')
local log = require('mcp-tools.log')
local progress = require('mcp-tools.editor.lsp.progress')

local M = {}

--- A server that takes longer was at something else, ms.
local SLOW_MS = 3000
--- What was thought of a text may follow for so long, ns.
local REMEMBERED = 30e9
---@class mcp-tools.lsp.Published
---@field version integer? of the text; few servers leave it out
---@field count integer how many times the server has spoken about the file
---@field at integer ns

---@class mcp-tools.lsp.Sent
---@field at integer ns, when the server was last told of the text
---@field answered boolean it has spoken about the file since
---@field anew boolean as of one just opened: nothing about an older text can follow
---@field version integer? that it was given
---@field again boolean another text had the same number a moment ago
---@field read_at integer? ns, when the server had surely read it

---@class mcp-tools.lsp.Heard
---@field sent table<string, mcp-tools.lsp.Sent> by file URI
---@field pace table<string, { bursts: integer, gap: number }> by file URI: how often it spoke after it was told of a
---text, and the longest that it paused (ms) before it said more of the same
---@field numbers table<string, table<integer, integer>> URI → version → ns, when a text was last sent by it
---@field asked table<integer, 'waiting'|'cancelled'> questions of ours (request.lua) by the number of the request
---@field versioned boolean it says of which version of a text it speaks
---@field slowest number ms, the longest that it took to speak about a change
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

---@type table<string, fun(of: mcp-tools.lsp.Heard, params: table)>
local TAKE = {
  ['$/progress'] = progress.take,
  ['window/workDoneProgress/create'] = progress.announce,
  ['textDocument/publishDiagnostics'] = function(of, params)
    local uri = vim.uri_from_fname(vim.uri_to_fname(params.uri))
    local before, sent, now = of.published[uri], of.sent[uri], vim.uv.hrtime()
    local version = type(params.version) == 'number' and params.version or nil
    of.spoke = true
    of.versioned = of.versioned or version ~= nil
    local pace = of.pace[uri] or { bursts = 0, gap = 0 }
    of.pace[uri] = pace
    if sent and sent.answered and before and before.at > math.max(sent.at, sent.read_at or 0) then
      pace.gap = math.max(pace.gap, math.min((now - before.at) / 1e6, SLOW_MS))
    end
    if sent and not sent.answered then
      pace.bursts = pace.bursts + 1
      sent.answered = true
      if not sent.anew then
        of.slowest = math.max(of.slowest, math.min((now - sent.at) / 1e6, SLOW_MS))
      end
    end
    of.published[uri] = { version = version, count = (before and before.count or 0) + 1, at = now }
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
    progress = progress.pending(client, now),
    announced = {},
    ended_at = 0,
    answered_at = 0,
    changed_at = 0,
    opened_at = now,
    published = {},
    sent = {},
    numbers = {},
    asked = {},
    pace = {},
    spoke = false,
    versioned = false,
    slowest = 0,
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

--- A server was told of a text just now. Neovim begins to count anew whenever a file is read again, so that the same
--- number may stand for two texts.
---@param of mcp-tools.lsp.Heard
---@param uri string
---@param anew boolean what it said before is of another text
---@param version integer? none: it was closed
function M.note_sent(of, uri, anew, version)
  uri = vim.uri_from_fname(vim.uri_to_fname(uri))
  local now, again = vim.uv.hrtime(), false
  if version then
    local numbers = of.numbers[uri] or {}
    again = numbers[version] ~= nil and now - numbers[version] < REMEMBERED
    numbers[version] = now
    for number, at in pairs(numbers) do
      if now - at > REMEMBERED then
        numbers[number] = nil
      end
    end
    of.numbers[uri] = numbers
    local kind = uri:match('%.([%w_]+)$') or ''
    of.kind = of.kind or kind
    of[(anew or kind ~= of.kind) and 'opened_at' or 'changed_at'] = now
  end
  of.sent[uri] = { at = now, answered = false, anew = anew, version = version, again = again }
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
  local group = vim.api.nvim_create_augroup('mcp-tools.lsp', { clear = true })
  vim.api.nvim_create_autocmd('LspAttach', {
    group = group,
    desc = 'mcp-tools: what language servers say',
    callback = function(args)
      local id = client_of(args)
      local client = id and vim.lsp.get_client_by_id(id)
      if client then
        M.of(client, false)
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
    desc = 'mcp-tools: questions to language servers that somebody cancels, or that need not be asked',
    callback = function(args)
      local id = client_of(args)
      local of, number = id and heard[id], id and args.data.request_id
      if of and of.asked[number] and args.data.request.type == 'cancel' then
        of.asked[number] = 'cancelled'
      elseif of then
        highlights.spare(vim.lsp.get_client_by_id(id), number, args.data.request)
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

return M
