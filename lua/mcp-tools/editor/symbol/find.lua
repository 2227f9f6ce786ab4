--- Finds symbols by name: in a file, in a directory, or the single match in the project.

local access = require('mcp-tools.privacy.access')
local args_of = require('mcp-tools.editor.lsp.args')
local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local file_type = require('mcp-tools.files.filetype')
local lsp = require('mcp-tools.editor.lsp')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.position')
local search = require('mcp-tools.editor.search')
local search_files = require('mcp-tools.editor.search.files')
local symbol = require('mcp-tools.editor.symbol')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

local METHOD = 'workspace/symbol'
--- Maximum number of files in one search.
local MAX_FILES = 100
--- Maximum number of files to load so that a server starts; if there are more, only their texts are parsed.
local MAX_LOADED = 20

---@class mcp-tools.SymbolSource: mcp-tools.Target
---@field bufnr integer
---@field file mcp-tools.SymbolFile

--- Opens a file without showing it, if it is not open, and finds its symbols.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { path: string?, bufnr: integer? } neither: the current file
---@param serverless? table<string, true> filetypes without a server, which are not waited for again; extended here
---@return mcp-tools.SymbolSource?
---@return mcp-tools.Error? err
function M.open(ctx, args, serverless)
  local source, err = target.await(ctx, args, { load = true, current = true })
  if not source then
    return nil, err
  end
  local filetype = vim.bo[source.bufnr].filetype
  local file
  file, err = symbol.await(ctx, source.bufnr, {
    fresh = source.new and not (serverless and serverless[filetype]),
  })
  if not file then
    return nil, err
  elseif serverless and file.by ~= 'server' then
    serverless[filetype] = true
  end
  return vim.tbl_extend('force', source, { file = file })
end

--- Unloads a file that was loaded for a call.
M.close = target.drop

--- Returns a function that reads lines of a buffer; no lines after the buffer is closed.
---@param bufnr integer
---@return mcp-tools.LinesOf
function M.lines_of(bufnr)
  return function(first, last)
    return vim.api.nvim_buf_is_loaded(bufnr) and vim.api.nvim_buf_get_lines(bufnr, first - 1, last, false) or {}
  end
end

---@class mcp-tools.Hits matching symbols of one file
---@field shown string
---@field bufnr integer? nil: the file is not loaded
---@field lines_of mcp-tools.LinesOf
---@field filetype string
---@field file mcp-tools.SymbolFile
---@field nodes mcp-tools.SymbolNode[]
---@field source mcp-tools.SymbolSource?

---@class mcp-tools.ProjectSymbols
---@field hits mcp-tools.Hits[]
---@field total integer
---@field incomplete string? reason: a server is not ready
---@field skipped integer number of files that were not searched
---@field word string?
---@field files integer? number of searched files
---@field by table<string, true>? sources of their symbols
---@field unknown table<string, integer>? number of files without a source, by filetype
---@field near string? similar names in a file without a match

---@param place mcp-tools.search.Place
---@param path string
local function is_below(place, path)
  return path == place.path or vim.startswith(path, place.path .. '/')
end

---@alias mcp-tools.PendingAnswer fun(): mcp-tools.lsp.Answer?, mcp-tools.Error? waits for the answer

--- Asks the running servers.
---@param ctx mcp-tools.Ctx
---@param word string
---@return mcp-tools.PendingAnswer[]
local function ask_servers(ctx, word)
  local asked = {}
  for _, client in ipairs(clients.of(nil, METHOD)) do
    local bufnr = next(client.attached_buffers)
    if bufnr and vim.api.nvim_buf_is_loaded(bufnr) then
      table.insert(asked, lsp.begin(ctx, client, bufnr, METHOD, { query = word }))
    end
  end
  return asked
end

--- Waits for the answers of servers, and returns the files with a symbol whose name contains the word.
---@param ctx mcp-tools.Ctx
---@param pending mcp-tools.PendingAnswer[]
---@param word string
---@return table<string, true> found resolved paths
---@return table<string, true> filetypes for which the answer is complete
---@return string? incomplete why an answer may be incomplete
local function files_with_symbol(ctx, pending, word)
  local found, filetypes, incomplete, wanted = {}, {}, nil, word:lower()
  local seen, pause = {}, time_slice.of(ctx)
  for _, each in ipairs(pending) do
    local answer = each()
    local result = answer and answer.result
    incomplete = incomplete or answer and answer.incomplete
    for _, item in ipairs(type(result) == 'table' and result or {}) do
      local uri = type(item.location) == 'table' and item.location.uri
      if uri and not seen[uri] and uri:find('^file:') and item.name:lower():find(wanted, 1, true) then
        seen[uri] = true
        found[paths.resolve(vim.uri_to_fname(uri))] = true
      end
      pause()
    end
    for bufnr in pairs(result and not answer.incomplete and answer.client.attached_buffers or {}) do
      if vim.api.nvim_buf_is_valid(bufnr) then
        filetypes[vim.bo[bufnr].filetype] = true
      end
    end
  end
  return found, filetypes, incomplete
end

---@param file mcp-tools.search.File
---@return string
local function filetype_of(file)
  if file.bufnr and vim.api.nvim_buf_is_loaded(file.bufnr) then
    return vim.bo[file.bufnr].filetype
  end
  return file_type.of(file.path)
end

--- Returns the symbols of a file that is not loaded, from its text.
---@param ctx mcp-tools.Ctx
---@param file mcp-tools.search.File
---@return mcp-tools.Hits
local function of_text(ctx, file)
  local lines, filetype = vim.split(file.text, '\n', { plain = true }), filetype_of(file)
  local symbols = symbol.of_text(ctx, lines, filetype)
  local function lines_of(first, last)
    return vim.list_slice(lines, first, last)
  end
  return { shown = file.shown, lines_of = lines_of, filetype = filetype, file = symbols, nodes = {} }
end

---@param source mcp-tools.SymbolSource
---@return mcp-tools.Hits
local function of_source(source)
  return {
    shown = source.shown,
    bufnr = source.bufnr,
    lines_of = M.lines_of(source.bufnr),
    filetype = vim.bo[source.bufnr].filetype,
    file = source.file,
    nodes = {},
    source = source,
  }
end

---@param file mcp-tools.SymbolFile
---@param path mcp-tools.NamePath
---@param opts { substring: boolean?, kinds: string[]? }
---@param pause fun()
---@return mcp-tools.SymbolNode[]
local function matching(file, path, opts, pause)
  return vim.tbl_filter(function(node)
    return not opts.kinds or vim.list_contains(opts.kinds, node.kind)
  end, symbol_tree.all(file.tree, path, opts.substring, pause))
end

--- Finds symbols of one file. The file stays loaded.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param path mcp-tools.NamePath
---@param args { path: string?, bufnr: integer?, substring: boolean?, kinds: string[]? }
---@return mcp-tools.ProjectSymbols?
---@return mcp-tools.Error? err
function M.in_file(ctx, path, args)
  local source, err = M.open(ctx, args)
  if not source then
    return nil, err
  elseif source.file.by == 'nothing' then
    return nil, select(2, symbol.one(source.file, path, 'symbol', source.shown))
  end
  local hits, pause = of_source(source), time_slice.of(ctx)
  hits.nodes, hits.source = matching(source.file, path, args, pause), nil
  local near = #hits.nodes == 0 and symbol_tree.near(source.file.tree, path, pause)
  return { hits = #hits.nodes > 0 and { hits } or {}, total = #hits.nodes, skipped = 0, near = near or nil }
end

---@param name string
---@return string
local function word_of(name)
  return name:match('[%w_$\128-\255]+') or name
end

--- Whether a text contains the names of all parents in a path, which must be in the same file.
---@param text string
---@param path mcp-tools.NamePath
local function contains_parents(text, path)
  for i = 1, #path.parts - 1 do
    if not text:find(word_of(path.parts[i].name), 1, true) then
      return false
    end
  end
  return true
end

--- Finds symbols below a directory. Files that were loaded for it stay loaded until `close_all`.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param path mcp-tools.NamePath
---@param place mcp-tools.search.Place
---@param opts { substring: boolean?, kinds: string[]? }
---@return mcp-tools.ProjectSymbols?
---@return mcp-tools.Error? err
function M.in_directory(ctx, path, place, opts)
  local word = word_of(path.parts[#path.parts].name)
  local pending = ask_servers(ctx, word)
  local text, err = search.find(
    ctx,
    { query = word, ignore_case = opts.substring, word = not opts.substring },
    { path = place.path }
  )
  if not text then
    return nil, err
  end
  local named, filetypes, incomplete = files_with_symbol(ctx, pending, word)
  local candidates, texts, pause, serverless = {}, {}, time_slice.of(ctx), {}
  for _, file in ipairs(text.files) do
    pause()
    if contains_parents(file.text, path) then
      table.insert(candidates, file)
    else
      named[file.path] = nil
    end
  end
  -- Servers match parts of names differently, so text matches are added for `substring`.
  local with_text_matches = opts.substring or next(named) == nil
  local access_filter, list = search_files.access_filter(ctx, place), {}
  for each in pairs(named) do
    pause()
    if is_below(place, each) and access_filter(each) then
      table.insert(list, each)
    end
  end
  table.sort(list)
  for _, file in ipairs(candidates) do
    pause()
    if with_text_matches or not filetypes[filetype_of(file)] then
      texts[file.path] = file
      table.insert(list, not named[file.path] and file.path or nil)
    end
  end
  local can_load = vim.tbl_count(texts) <= MAX_LOADED
  local made = {
    hits = {},
    total = 0,
    incomplete = incomplete,
    skipped = math.max(0, #list - MAX_FILES),
    word = word,
    files = math.min(#list, MAX_FILES),
    by = {},
    unknown = {},
  }
  for i = 1, math.min(#list, MAX_FILES) do
    local file = texts[list[i]]
    local hits
    if file and not can_load and not file.bufnr then
      hits = of_text(ctx, file)
    else
      local source = M.open(ctx, { path = list[i] }, serverless)
      hits = source and of_source(source)
    end
    if hits then
      local by = symbol.by(hits.file)
      if by then
        made.by[by] = true
      else
        made.unknown[hits.filetype] = (made.unknown[hits.filetype] or 0) + 1
      end
      hits.nodes = matching(hits.file, path, opts, pause)
      made.total = made.total + #hits.nodes
      if #hits.nodes > 0 then
        table.insert(made.hits, hits)
      elseif hits.source then
        M.close(hits.source)
      end
    end
    pause()
  end
  return made
end

--- Unloads the files that were loaded for a search.
---@param found mcp-tools.ProjectSymbols
function M.close_all(found)
  for _, hits in ipairs(found.hits) do
    M.close(hits.source)
  end
end

--- Returns where a symbol was searched for, for an error message.
---@param found mcp-tools.ProjectSymbols
---@return string
function M.searched_text(found)
  local by, unknown, count = vim.tbl_keys(found.by), {}, 0
  table.sort(by)
  for filetype, files in vim.spairs(found.unknown) do
    count = count + files
    table.insert(unknown, filetype == '' and 'no filetype' or filetype)
  end
  local known = #by > 0 and (' (by %s)'):format(table.concat(by, ', ')) or ''
  local text = ('searched %d files with the word %q%s'):format(found.files - count, found.word, known)
  if count > 0 then
    local rest = '%s; %d more have neither a language server nor a treesitter parser (%s)'
    text = rest:format(text, count, table.concat(unknown, ', '))
  end
  return text
end

--- Lists symbols for an error message.
---@param ctx mcp-tools.Ctx
---@param found mcp-tools.ProjectSymbols
---@return string
local function listed(ctx, found)
  local list = {}
  for _, hits in ipairs(found.hits) do
    for _, node in ipairs(hits.nodes) do
      if #list < 10 then
        local name = symbol_tree.of(node, hits.file.tree)
        table.insert(list, ('%s in %s:%d'):format(name, access.shown(hits.shown, ctx.root), node.line))
      end
    end
  end
  local more = found.total > #list and (' and %d more'):format(found.total - #list) or ''
  return table.concat(list, ', ') .. more
end

---@class mcp-tools.PickedSymbol
---@field source mcp-tools.SymbolSource
---@field node mcp-tools.SymbolNode
---@field path string its name path
---@field by string

---@param ctx mcp-tools.Ctx
---@param path mcp-tools.NamePath
---@param place mcp-tools.search.Place the project or a directory
---@return mcp-tools.SymbolSource? source the file of the only match
---@return mcp-tools.Error? err
local function only_source(ctx, path, place)
  local found, err = M.in_directory(ctx, path, place, {})
  if not found then
    return nil, err
  elseif found.total == 1 then
    local hits = found.hits[1]
    if hits.source then
      return hits.source
    end
    return M.open(ctx, { path = vim.fs.joinpath(ctx.root, hits.shown) })
  end
  M.close_all(found)
  if found.total == 0 and found.incomplete then
    return nil, errors.new('busy', ('symbol: %q was not found, but %s; try again'):format(path.given, found.incomplete))
  elseif found.total == 0 then
    local text = 'symbol: there is no %q in the project; %s; symbol_find with substring finds parts of names'
    return nil, errors.new('not_found', text:format(path.given, M.searched_text(found)))
  end
  local text = 'symbol: %q matches %d symbols: %s; pass path and the full name path of one'
  return nil, errors.new('validation_error', text:format(path.given, found.total, listed(ctx, found)))
end

--- Finds the one symbol that matches the arguments, in a file, a directory or the project. Its file stays loaded.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { symbol: string, path: string?, bufnr: integer? }
---@return mcp-tools.PickedSymbol|table|nil
---@return mcp-tools.Error? err lists the matches, or similar symbols
function M.one(ctx, args)
  local path, err = symbol_tree.parse(args.symbol, 'symbol')
  if not path then
    return nil, err
  end
  local source, place, node
  if not args.bufnr then
    place, err = search_files.place(ctx, args.path)
    if not place then
      return nil, err
    end
  end
  if place and place.is_directory then
    source, err = only_source(ctx, path, place)
  else
    source, err = M.open(ctx, args)
  end
  if source then
    node, err = symbol.one(source.file, path, 'symbol', source.shown, time_slice.of(ctx))
  end
  if not source or not node then
    return nil, err
  end
  return { source = source, node = node, path = symbol_tree.of(node, source.file.tree), by = symbol.by(source.file) }
end

--- Returns the place of a symbol's name.
---@param picked mcp-tools.PickedSymbol
---@return mcp-tools.lsp.Spot
function M.spot_of(picked)
  local node, bufnr = picked.node, picked.source.bufnr
  local line = vim.api.nvim_buf_get_lines(bufnr, node.at[1], node.at[1] + 1, false)[1] or ''
  local byte = position.byte(line, node.at[2], node.units)
  local first = line:find(symbol_tree.word(node.name) or node.name, byte + 1, true) -- some servers include the keyword
  local column = position.units(line, first and first - 1 or byte, 'utf-32') + 1
  return { bufnr = bufnr, path = picked.source.shown, line = node.at[1] + 1, column = column, text = line }
end

--- Resolves arguments to a position: by the name path of a symbol, or by line and column. In a file, also finds a name
--- that is only used there, such as a function of a library.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { symbol: string?, path: string?, line: integer?, column: integer?, bufnr: integer? }
---@return mcp-tools.lsp.Spot? spot
---@return mcp-tools.Error? err
---@return mcp-tools.PickedSymbol? picked the symbol, if it is found by its name path
function M.spot(ctx, args)
  if args.line or args.column or not args.symbol then
    return args_of.spot(ctx, args)
  end
  local picked, err = M.one(ctx, args)
  if picked then
    return M.spot_of(picked), nil, picked
  end
  ---@cast err mcp-tools.Error
  local is_file = args.bufnr or args.path and vim.fn.isdirectory((paths.resolve(args.path))) == 0
  if is_file and err.code == 'not_found' and not args.symbol:find('/', 1, true) then
    local spot = args_of.spot(ctx, args)
    if spot and #clients.of(spot.bufnr) > 0 then -- without a server it may be any word with that text
      return spot
    end
  end
  return nil, err
end

return M
