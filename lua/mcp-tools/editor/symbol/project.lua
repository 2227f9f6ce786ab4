--- Symbols of the project by name: language servers say in which files, else those that hold the word are looked at.
---
--- Receives: a name path, a place; the ctx of a `run` tool.
--- Sends: the symbols that are meant, with the buffers or texts that they stand in.
--- Does not know about: how they are shown.

local access = require('mcp-tools.files.access')
local clients = require('mcp-tools.editor.lsp.clients')
local file_type = require('mcp-tools.editor.file.filetype')
local in_text = require('mcp-tools.editor.symbol.in_text')
local lsp = require('mcp-tools.editor.lsp')
local name_path = require('mcp-tools.editor.symbol.name_path')
local watched_files = require('mcp-tools.editor.lsp.watched_files')
local paths = require('mcp-tools.files.paths')
local request = require('mcp-tools.editor.lsp.request')
local search = require('mcp-tools.editor.search')
local search_files = require('mcp-tools.editor.search.files')
local source = require('mcp-tools.editor.symbol.source')
local symbol = require('mcp-tools.editor.symbol')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

local METHOD = 'workspace/symbol'
--- Files of one call; a name that is in more of them says little.
local MAX_FILES = 100
--- Files without a running server that are loaded, so that theirs starts; of more of them the text is looked at.
local MAX_LOADED = 20

---@class mcp-tools.Hits symbols of one file
---@field shown string
---@field bufnr integer? nil: of a file that is not loaded
---@field lines_of mcp-tools.LinesOf
---@field filetype string
---@field file mcp-tools.SymbolFile
---@field nodes mcp-tools.SymbolNode[]
---@field source mcp-tools.SymbolSource?

---@class mcp-tools.ProjectSymbols
---@field hits mcp-tools.Hits[]
---@field total integer
---@field incomplete string? a server is not ready
---@field passed integer files that were not looked at
---@field word string?
---@field files integer? that were looked at
---@field by table<string, true>? what knew their symbols
---@field unknown table<string, integer>? files whose symbols nothing knows, by filetype
---@field near string? in a file where nothing is meant: what comes near

---@param place mcp-tools.search.Place
---@param path string
local function is_below(place, path)
  return path == place.path or vim.startswith(path, place.path .. '/')
end

---@class mcp-tools.AskedServer
---@field client vim.lsp.Client
---@field answer fun(): any waits for it

--- Asks the servers that run, as soon as they know what the disk has.
---@param ctx mcp-tools.Ctx
---@param word string
---@return mcp-tools.AskedServer[]
---@return string? incomplete
local function ask_servers(ctx, word)
  local asked, incomplete = {}, nil
  local list = clients.of(nil, METHOD)
  if #list > 0 then
    watched_files.tell(ctx)
  end
  for _, client in ipairs(list) do
    local bufnr = next(client.attached_buffers)
    if bufnr and vim.api.nvim_buf_is_loaded(bufnr) then
      incomplete = lsp.settle(ctx, client, bufnr, METHOD) or incomplete
      table.insert(asked, { client = client, answer = request.begin(ctx, client, METHOD, { query = word }, bufnr) })
    end
  end
  return asked, incomplete
end

--- What they say.
---@param ctx mcp-tools.Ctx
---@param asked mcp-tools.AskedServer[]
---@param word string
---@return table<string, true> found resolved paths
---@return table<string, true> filetypes that a server has answered for
local function named_by(ctx, asked, word)
  local found, filetypes, wanted = {}, {}, word:lower()
  local seen, pause = {}, time_slice.of(ctx)
  for _, each in ipairs(asked) do
    local result = each.answer()
    for _, item in ipairs(type(result) == 'table' and result or {}) do
      local uri = type(item.location) == 'table' and item.location.uri
      if uri and not seen[uri] and uri:find('^file:') and item.name:lower():find(wanted, 1, true) then
        seen[uri] = true
        found[paths.resolve(vim.uri_to_fname(uri))] = true
      end
      pause()
    end
    if result then
      for bufnr in pairs(each.client.attached_buffers) do
        if vim.api.nvim_buf_is_valid(bufnr) then
          filetypes[vim.bo[bufnr].filetype] = true
        end
      end
    end
  end
  return found, filetypes
end

---@param file mcp-tools.search.File
---@return string
local function filetype_of(file)
  if file.bufnr and vim.api.nvim_buf_is_loaded(file.bufnr) then
    return vim.bo[file.bufnr].filetype
  end
  return file_type.of(file.path)
end

--- The symbols of a file that is not loaded, by its text.
---@param ctx mcp-tools.Ctx
---@param file mcp-tools.search.File
---@param filetype string
---@param symbols_of function of `in_text.of_texts`
---@return mcp-tools.Hits
local function of_text(ctx, file, filetype, symbols_of)
  local lines = vim.split(file.text, '\n', { plain = true })
  local symbols = ctx:await(function(done)
    symbols_of(lines, filetype, done)
  end)
  local function lines_of(first, last)
    return vim.list_slice(lines, first, last)
  end
  return { shown = file.shown, lines_of = lines_of, filetype = filetype, file = symbols, nodes = {} }
end

---@param ctx mcp-tools.Ctx
---@param path string
---@param serverless mcp-tools.Serverless
---@return mcp-tools.Hits?
local function of_path(ctx, path, serverless)
  local each = source.find(ctx, { path = path }, serverless)
  if not each then
    return nil
  end
  return {
    shown = each.shown,
    bufnr = each.bufnr,
    lines_of = source.lines_of(each.bufnr),
    filetype = vim.bo[each.bufnr].filetype,
    file = each.file,
    nodes = {},
    source = each,
  }
end

---@param name string
---@return string
local function word_of(name)
  return name:match('[%w_$\128-\255]+') or name
end

--- What stands in something is in the same file.
---@param text string
---@param path mcp-tools.NamePath
local function holds_all(text, path)
  for i = 1, #path.parts - 1 do
    if not text:find(word_of(path.parts[i].name), 1, true) then
      return false
    end
  end
  return true
end

--- Finds symbols below a place. What was loaded for it stays until `drop`.
---@param ctx mcp-tools.Ctx in a coroutine
---@param path mcp-tools.NamePath
---@param place mcp-tools.search.Place
---@param opts { substring: boolean?, kinds: string[]? }
---@return mcp-tools.ProjectSymbols?
---@return mcp-tools.Error? err
function M.find(ctx, path, place, opts)
  local word = word_of(path.parts[#path.parts].name)
  local asked, incomplete = ask_servers(ctx, word)
  local text, err = search.find(
    ctx,
    { query = word, ignore_case = opts.substring, word = not opts.substring },
    { path = place.path }
  )
  if not text then
    return nil, err
  end
  local named, filetypes = named_by(ctx, asked, word)
  local holding, texts, pause, serverless = {}, {}, time_slice.of(ctx), {}
  for _, file in ipairs(text.files) do
    pause()
    if holds_all(file.text, path) then
      table.insert(holding, file)
    else
      named[file.path] = nil
    end
  end
  -- Servers look for the beginnings of words, each in its way.
  local all = opts.substring or next(named) == nil
  for _, file in ipairs(holding) do
    pause()
    if all or not filetypes[filetype_of(file)] then
      texts[file.path] = file
    end
  end
  local judge, list = search_files.judge(ctx, place), {}
  for each in pairs(named) do
    pause()
    if is_below(place, each) and judge(each) then
      table.insert(list, each)
    end
  end
  table.sort(list)
  local few = vim.tbl_count(texts) <= MAX_LOADED
  for _, file in ipairs(holding) do
    if texts[file.path] and not named[file.path] then
      table.insert(list, file.path)
    end
  end
  local made = {
    hits = {},
    total = 0,
    incomplete = incomplete,
    passed = math.max(0, #list - MAX_FILES),
    word = word,
    files = math.min(#list, MAX_FILES),
    by = {},
    unknown = {},
  }
  local symbols_of = in_text.of_texts()
  for i = 1, math.min(#list, MAX_FILES) do
    local file = texts[list[i]]
    local hits
    if file and not few and not file.bufnr then
      hits = of_text(ctx, file, filetype_of(file), symbols_of)
    else
      hits = of_path(ctx, list[i], serverless)
    end
    if hits then
      local by = symbol.by(hits.file)
      if by then
        made.by[by] = true
      else
        made.unknown[hits.filetype] = (made.unknown[hits.filetype] or 0) + 1
      end
      for _, node in ipairs(name_path.all(hits.file.tree, path, opts.substring)) do
        if not opts.kinds or vim.list_contains(opts.kinds, node.kind) then
          table.insert(hits.nodes, node)
        end
      end
      made.total = made.total + #hits.nodes
      if #hits.nodes > 0 then
        table.insert(made.hits, hits)
      elseif hits.source then
        source.drop(hits.source)
      end
    end
    pause()
  end
  return made
end

--- What was loaded for a call alone goes with it.
---@param found mcp-tools.ProjectSymbols
---@param but? integer a buffer that stays
function M.drop(found, but)
  for _, hits in ipairs(found.hits) do
    if hits.source and hits.bufnr ~= but then
      source.drop(hits.source)
    end
  end
end

--- Says where a symbol was looked for.
---@param found mcp-tools.ProjectSymbols
---@return string
function M.looked(found)
  local by, unknown, count = vim.tbl_keys(found.by), {}, 0
  table.sort(by)
  for filetype, files in vim.spairs(found.unknown) do
    count = count + files
    table.insert(unknown, filetype == '' and 'no filetype' or filetype)
  end
  local known = #by > 0 and (' (by %s)'):format(table.concat(by, ', ')) or ''
  local text = ('looked in %d files with the word %q%s'):format(found.files - count, found.word, known)
  if count > 0 then
    local rest = '%s; %d more have neither a language server nor a treesitter parser (%s)'
    text = rest:format(text, count, table.concat(unknown, ', '))
  end
  return text
end

--- Where a symbol is, for errors that list several.
---@param ctx mcp-tools.Ctx
---@param found mcp-tools.ProjectSymbols
---@return string
function M.told(ctx, found)
  local list = {}
  for _, hits in ipairs(found.hits) do
    for _, node in ipairs(hits.nodes) do
      if #list < 10 then
        local name = name_path.of(node, hits.file.tree)
        table.insert(list, ('%s in %s:%d'):format(name, access.shown(hits.shown, ctx.root), node.line))
      end
    end
  end
  local more = found.total > #list and (' and %d more'):format(found.total - #list) or ''
  return table.concat(list, ', ') .. more
end

return M
