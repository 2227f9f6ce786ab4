--- Symbols of files, from the language server or otherwise the syntax tree; `by` is the source.
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

local api = vim.api

local M = {}

---@class mcp-tools.SymbolFile
---@field tree mcp-tools.SymbolNode[]
---@field by 'server'|'treesitter'|'nothing'
---@field name string? of the server or the language
---@field why string? why the server returned no symbols, or why there are none
---@field changedtick integer? of the buffer that it was read from
---@field servers string?
---@field failed boolean? the server did not answer

--- Number of attempts while the user types.
local TRIES = 3
--- Maximum wait for a server while a user waits for the answer, ms.
M.INTERACTIVE_MS = 2000
--- Symbols of buffers by number.
local cache = lru(64)

local METHOD = 'textDocument/documentSymbol'
--- Maximum wait for the answer to `initialize`, ms.
local STARTS_MS = 10000
--- Maximum wait for the first answer, before which a server may read the project, and for later answers, ms.
local FIRST_MS, ANSWERS_MS = 20000, 5000

--- Servers that have answered before.
---@type table<integer, true>
local answered = {}

--- Identifies the servers of a buffer.
---@param bufnr integer
---@return string key
local function servers_of(bufnr)
  local ids = {}
  for _, client in ipairs(clients.starting(bufnr)) do
    table.insert(ids, client.id)
  end
  return table.concat(ids, ' ')
end

---@class mcp-tools.symbol.Opts
---@field fresh? boolean the buffer was just loaded, so its server may not have started
---@field within? integer maximum wait for the server's answer, ms

--- Asks the first server that can answer.
---@param ctx mcp-tools.Ctx
---@param bufnr integer loaded
---@param opts mcp-tools.symbol.Opts
---@return mcp-tools.SymbolNode[]? tree
---@return string? server nil if there is none
---@return string? why there is no tree, or why an empty one may be wrong
local function ask_server(ctx, bufnr, opts)
  clients.await_started(ctx, bufnr, opts.fresh == true, STARTS_MS)
  local client = vim.api.nvim_buf_is_loaded(bufnr) and clients.of(bufnr, METHOD)[1]
  if not client then
    return nil
  end
  local ms = opts.within or answered[client.id] and ANSWERS_MS or FIRST_MS
  local result, err = request.ask(ctx, client, METHOD, lsp.document_params(bufnr), bufnr, ms)
  if err then
    return nil, client.name, err.message
  end
  answered[client.id] = true
  local tree = symbol_tree.of_server(result, client.offset_encoding, time_slice.of(ctx))
  return tree, client.name, #tree == 0 and lsp.why_not_ready(client) or nil
end

--- Returns the cached symbols of a buffer, if they are current.
---@param bufnr integer
---@return mcp-tools.SymbolFile?
local function cached(bufnr)
  local file = cache:get(bufnr)
  local is_current = file
    and file.changedtick == api.nvim_buf_get_changedtick(bufnr)
    and file.servers == servers_of(bufnr)
  return is_current and file or nil
end

--- Returns symbols from the syntax tree.
---@param ctx mcp-tools.Ctx
---@param source integer|string
---@param filetype string
---@return mcp-tools.SymbolFile
local function ask_syntax(ctx, source, filetype)
  local tree, lang_or_why = by_syntax.ask(ctx, source, filetype)
  if not tree then
    return { tree = {}, by = 'nothing', why = lang_or_why }
  end
  return { tree = symbol_tree.prune(tree, time_slice.of(ctx)), by = 'treesitter', name = lang_or_why }
end

--- Finds symbols of a text without a buffer.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param lines string[]
---@param filetype string
---@return mcp-tools.SymbolFile
function M.of_text(ctx, lines, filetype)
  return ask_syntax(ctx, table.concat(lines, '\n') .. '\n', filetype)
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
---@param pause? fun()
---@return mcp-tools.SymbolNode?
---@return mcp-tools.Error? err
function M.one(file, path, argument, where, pause)
  if file.by == 'nothing' then
    return nil, errors.new('not_found', ('%s: the symbols of %s are not known: %s'):format(argument, where, file.why))
  end
  return symbol_tree.one(file.tree, path, argument, where, pause)
end

---@param ctx mcp-tools.Ctx
---@param bufnr integer loaded
---@param opts mcp-tools.symbol.Opts
---@return mcp-tools.SymbolFile? file nil: the buffer was closed
local function read(ctx, bufnr, opts)
  local tree, server, why = ask_server(ctx, bufnr, opts)
  if not api.nvim_buf_is_loaded(bufnr) then
    return nil
  elseif tree and (#tree > 0 or api.nvim_buf_line_count(bufnr) < 2) then
    return { tree = symbol_tree.prune(tree, time_slice.of(ctx)), by = 'server', name = server }
  end
  local found = ask_syntax(ctx, bufnr, vim.bo[bufnr].filetype)
  if tree and #found.tree == 0 and not why then
    return { tree = {}, by = 'server', name = server }
  elseif found.by == 'nothing' then
    found.why = ('%s, and %s'):format(why or 'no language server knows them', found.why)
  else
    found.why = why
  end
  found.failed = why ~= nil
  return found
end

--- Returns the symbols of a buffer.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param bufnr integer loaded
---@param opts? mcp-tools.symbol.Opts
---@return mcp-tools.SymbolFile?
---@return mcp-tools.Error? err
function M.await(ctx, bufnr, opts)
  for _ = 1, TRIES do
    local file = cached(bufnr)
    if file then
      return file
    end
    local tick = api.nvim_buf_get_changedtick(bufnr)
    file = read(ctx, bufnr, opts or {})
    if not file or not api.nvim_buf_is_loaded(bufnr) then
      return nil, buffers.gone(bufnr)
    elseif api.nvim_buf_get_changedtick(bufnr) == tick then
      file.changedtick, file.servers = tick, servers_of(bufnr)
      if not file.failed then -- otherwise the server is asked again next time
        cache:set(bufnr, file)
      end
      return file
    end
  end
  return nil, errors.new('busy', 'the text keeps changing; try again')
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
  return M.of_text(ctx, source.lines, source.filetype or '')
end

return M
