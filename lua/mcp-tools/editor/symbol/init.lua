--- Symbols of files, from the language server or else the syntax tree; the result says which.
---
---   local file = symbol.await(ctx, bufnr)                                   -- file.tree, file.by, file.changedtick

local buffers = require('mcp-tools.editor.buffer')
local by_syntax = require('mcp-tools.editor.symbol.by_syntax')
local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local lru = require('mcp-tools.util.lru')
local lsp = require('mcp-tools.editor.lsp')
local request = require('mcp-tools.editor.lsp.request')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local time_slice = require('mcp-tools.util.time_slice')
local treesitter = require('mcp-tools.editor.treesitter')

local api = vim.api

local M = {}

---@class mcp-tools.SymbolFile
---@field tree mcp-tools.SymbolNode[]
---@field by 'server'|'treesitter'|'nothing'
---@field name string? of the server or the language
---@field why string? why there is no result from the server, or none at all
---@field changedtick integer? of the buffer that it was read from
---@field servers string?
---@field failed boolean? the server did not answer

--- Number of attempts while the user types.
local TRIES = 3
--- Maximum wait for a server where a user waits for the answer, ms.
M.INTERACTIVE_MS = 2000
--- Symbols of buffers by number, and of texts without a buffer by filetype and text.
local buffer_cache, text_cache = lru(64), lru(64)
--- Maximum length of a text whose symbols are cached, in bytes.
local MAX_KEPT_TEXT = 256 * 1024

local METHOD = 'textDocument/documentSymbol'
--- Maximum wait for the answer to `initialize`, ms.
local STARTS_MS = 10000
--- Maximum wait for the first answer, which may come after the server has read the project, and for later ones, ms.
local FIRST_MS, ANSWERS_MS = 20000, 5000

--- Servers that have answered before.
---@type table<integer, true>
local answered = {}

--- Identifies the servers of a buffer.
---@param bufnr integer
---@return string key changes with the servers of the buffer
local function servers_of(bufnr)
  local ids = {}
  for _, client in ipairs(clients.starting(bufnr)) do
    table.insert(ids, client.id)
  end
  return table.concat(ids, ' ')
end

--- Asks the first server that can answer. `cb` is called on the main loop, perhaps before this returns.
---@param bufnr integer loaded
---@param fresh boolean the buffer was just loaded, so its server may not have started
---@param cb fun(tree: mcp-tools.SymbolNode[]?, server: string?, why: string?) without a server all are nil; `why`: why
---  there is no tree, or why an empty one may be wrong
---@param within? integer ms for the answer
---@return fun() cancel
local function ask_server(bufnr, fresh, cb, within)
  local stop_asking
  local stop_waiting = clients.when_started(bufnr, fresh, STARTS_MS, function()
    local client = vim.api.nvim_buf_is_loaded(bufnr) and clients.of(bufnr, METHOD)[1]
    if not client then
      return cb()
    end
    local opts = { bufnr = bufnr, timeout = within or answered[client.id] and ANSWERS_MS or FIRST_MS }
    local params = { textDocument = { uri = vim.uri_from_bufnr(bufnr) } }
    stop_asking = request.start(client, METHOD, params, opts, function(result, err)
      if err then
        return cb(nil, client.name, err.message)
      end
      answered[client.id] = true
      time_slice.run(function(pause)
        local tree = symbol_tree.of_server(result, client.offset_encoding, pause)
        cb(tree, client.name, #tree == 0 and lsp.doubt(client) or nil)
      end)
    end)
  end)
  return function()
    stop_waiting()
    if stop_asking then
      stop_asking()
    end
  end
end

--- Returns the cached symbols of a buffer, if they are current.
---@param bufnr integer
---@return mcp-tools.SymbolFile?
local function cached(bufnr)
  local file = buffer_cache:get(bufnr)
  local is_current = file
    and file.changedtick == api.nvim_buf_get_changedtick(bufnr)
    and file.servers == servers_of(bufnr)
  return is_current and file or nil
end

--- Finds symbols by the syntax tree. `cb` is called on the main loop, perhaps before this returns.
---@param source integer|string
---@param filetype string
---@param cb fun(file: mcp-tools.SymbolFile)
local function ask_syntax(source, filetype, cb)
  by_syntax.ask(source, filetype, function(tree, lang, why)
    if tree then
      return time_slice.run(function(pause)
        cb({ tree = symbol_tree.prune(tree, pause), by = 'treesitter', name = lang })
      end)
    end
    cb({ tree = {}, by = 'nothing', why = why })
  end)
end

--- Finds symbols of a text without a buffer. `cb` is called on the main loop, perhaps before this returns.
---@param lines string[]
---@param filetype string
---@param cb fun(file: mcp-tools.SymbolFile)
function M.of_text(lines, filetype, cb)
  local text, lang = table.concat(lines, '\n') .. '\n', treesitter.language(filetype)
  local key = #text <= MAX_KEPT_TEXT and table.concat({ filetype, lang or '', text }, '\0')
  local before = key and text_cache:get(key)
  if before then
    return cb(before)
  end
  ask_syntax(text, filetype, function(file)
    if key and (file.by == 'treesitter' or not lang) then -- otherwise the parser has failed, and may not the next time
      text_cache:set(key, file)
    end
    cb(file)
  end)
end

--- Returns the source of the symbols of a file.
---@param file mcp-tools.SymbolFile
---@return string? name nil if there is none
function M.by(file)
  if file.by == 'server' then
    return file.name --[[@as string]]
  end
  return file.by == 'treesitter' and 'treesitter' or nil
end

--- Returns the one symbol of a file that a name path matches.
---@param file mcp-tools.SymbolFile
---@param path mcp-tools.NamePath
---@param argument string name of the argument, for the error
---@param where string the file, for the error
---@return mcp-tools.SymbolNode?
---@return mcp-tools.Error? err
function M.one(file, path, argument, where)
  if file.by == 'nothing' then
    return nil, errors.new('not_found', ('%s: the symbols of %s are not known: %s'):format(argument, where, file.why))
  end
  return symbol_tree.one(file.tree, path, argument, where)
end

--- Finds symbols of a buffer. `cb` is called on the main loop, perhaps before this returns.
---@param bufnr integer loaded
---@param cb fun(file: mcp-tools.SymbolFile?, err: mcp-tools.Error?)
---@param opts? { fresh: boolean?, within: integer? } `fresh`: the buffer was just loaded; `within`: maximum wait for
---  the server's answer, ms
---@param try? integer
---@return fun() cancel
function M.of_buffer(bufnr, cb, opts, try)
  opts = opts or {}
  local file = cached(bufnr)
  if file then
    cb(file)
    return function() end
  end
  local tick, cancel = api.nvim_buf_get_changedtick(bufnr), nil
  local function finish(found)
    if not api.nvim_buf_is_loaded(bufnr) then
      return cb(nil, buffers.gone(bufnr))
    elseif api.nvim_buf_get_changedtick(bufnr) ~= tick then
      if (try or 1) >= TRIES then
        return cb(nil, errors.new('busy', 'the text keeps changing; try again'))
      end
      cancel = M.of_buffer(bufnr, cb, { within = opts.within }, (try or 1) + 1)
      return
    end
    found.changedtick, found.servers = tick, servers_of(bufnr)
    if not found.failed then -- the server is asked again next time
      buffer_cache:set(bufnr, found)
    end
    cb(found)
  end
  local stop = ask_server(bufnr, opts.fresh == true, function(tree, server, why)
    if not api.nvim_buf_is_loaded(bufnr) then
      return finish()
    elseif tree and (#tree > 0 or api.nvim_buf_line_count(bufnr) < 2) then
      return time_slice.run(function(pause)
        finish({ tree = symbol_tree.prune(tree, pause), by = 'server', name = server })
      end)
    end
    ask_syntax(bufnr, vim.bo[bufnr].filetype, function(found)
      if tree and #found.tree == 0 and not why then
        found = { tree = {}, by = 'server', name = server }
      end
      if found.by == 'nothing' then
        found = vim.tbl_extend('force', found, {
          why = ('%s, and %s'):format(why or 'no language server knows them', found.why),
        })
      end
      found.failed, found.why = why ~= nil, found.by == 'nothing' and found.why or why
      finish(found)
    end)
  end, opts.within)
  return function()
    (cancel or stop)()
  end
end

--- Like `of_buffer`, for coroutines of `run` handlers; ends with the call.
---@param ctx mcp-tools.Ctx
---@param bufnr integer loaded
---@param opts? { fresh: boolean?, within: integer? }
---@return mcp-tools.SymbolFile?
---@return mcp-tools.Error? err
function M.await(ctx, bufnr, opts)
  return ctx:await(function(done)
    local cancel = M.of_buffer(bufnr, done, opts)
    ctx:on_cancel(cancel)
  end)
end

--- Returns symbols of a text for prompts: from its buffer if it is open, otherwise from its lines.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param source mcp-tools.TextSource
---@return mcp-tools.SymbolFile?
---@return mcp-tools.Error? err
function M.of_source(ctx, source)
  if source.bufnr then
    return M.await(ctx, source.bufnr, { within = M.INTERACTIVE_MS })
  end
  return ctx:await(function(done)
    M.of_text(source.lines, source.filetype or '', done)
  end)
end

return M
