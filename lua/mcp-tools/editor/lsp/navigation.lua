--- Navigation: finds the place that arguments mean, and the definitions and references of the symbol there.

local args_of = require('mcp-tools.editor.lsp.args')
local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local glob_of = require('mcp-tools.files.glob')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local position = require('mcp-tools.editor.lsp.position')
local strings = require('mcp-tools.util.strings')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local time_slice = require('mcp-tools.util.time_slice')
local server_state = require('mcp-tools.editor.lsp.server_state')
local watched_files = require('mcp-tools.editor.lsp.watched_files')

local M = {}

--- How long a server that was notified of new files is asked again, ns.
local DOUBT = 3e9

---@class mcp-tools.lsp.Spot a place in a loaded buffer
---@field bufnr integer
---@field path string
---@field line integer
---@field column integer
---@field text string

local SYMBOLS = 'textDocument/documentSymbol'
--- Methods with an answer for a name and none for a comment.
local ABOUT_NAMES = { 'textDocument/documentHighlight', 'textDocument/definition' }
--- Maximum number of places that the server is asked about.
local MAX_ASKED = 20
--- Returns the symbols of a file.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@param opts? mcp-tools.lsp.Opts
---@return mcp-tools.SymbolNode[]? tree nil: no server lists them
---@return mcp-tools.Error? err
local function symbols_of(ctx, bufnr, opts)
  local result, err, info = lsp.request(ctx, bufnr, SYMBOLS, lsp.document(bufnr), opts)
  if err then
    return nil, err.code ~= 'not_found' and err or nil
  end
  return info and symbol_tree.of_server(result, info.client.offset_encoding, time_slice.of(ctx)) or {}
end

--- Returns the first place of a word at which a server finds a name.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@param word string
---@param opts? mcp-tools.lsp.Opts
---@return mcp-tools.lsp.Place? place
---@return mcp-tools.Error? err
---@return boolean? unknown no server can answer
local function used(ctx, bufnr, word, opts)
  local places = args_of.places(bufnr, word, MAX_ASKED)
  for _, method in ipairs(ABOUT_NAMES) do
    if #clients.of(bufnr, method) > 0 then
      for _, place in ipairs(places) do
        local result, err = lsp.request(ctx, bufnr, method, lsp.place(bufnr, place.line, place.column), opts)
        if result or err then
          return result and place or nil, err
        end
      end
      return nil
    end
  end
  return nil, nil, true
end

--- Returns the place of a symbol without a line: where the server finds its definition or a use. The first match in the
--- text may be a comment, for which a server would answer that there are no references.
---@param ctx mcp-tools.Ctx in a coroutine
---@param bufnr integer loaded
---@param shown string the file, for messages
---@param symbol string a name or a name path
---@param opts? mcp-tools.lsp.Opts
---@return mcp-tools.lsp.Place? place
---@return mcp-tools.Error? err
local function place_of_symbol(ctx, bufnr, shown, symbol, opts)
  local path, bad = symbol_tree.parse(symbol, 'symbol')
  if not path then
    return nil, bad
  end
  local tree, failed = symbols_of(ctx, bufnr, opts)
  if failed then
    return nil, failed
  elseif #clients.of(bufnr) == 0 then
    return args_of.where(bufnr, { symbol = symbol }) -- the following request reports that there is no server
  end
  local found = symbol_tree.all(tree or {}, path)
  local word = args_of.word(symbol)
  if #found == 1 then
    local row, column = unpack(found[1].at)
    local line = vim.api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
    local byte = position.byte(line, column, found[1].units)
    local at = line:find(word, byte + 1, true) -- some servers include the keyword in the range
    return args_of.at(line, row + 1, at and at - 1 or byte)
  elseif #found == 0 and not symbol:find('/', 2, true) then
    local place, err, unknown = used(ctx, bufnr, word, opts)
    if place or err then
      return place, err
    elseif unknown and not tree then
      return args_of.where(bufnr, { symbol = symbol })
    end
  end
  return nil, select(2, symbol_tree.one(tree or {}, path, 'symbol', shown))
end

--- Returns the place that arguments mean.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args table
---@return mcp-tools.lsp.Spot? spot
---@return mcp-tools.Error? err
function M.spot(ctx, args)
  local target, err = lsp.target(ctx, args)
  if not target then
    return nil, err
  end
  local place
  if args.symbol and not args.line then
    place, err = place_of_symbol(ctx, target.bufnr, target.shown, args.symbol, { ready_ms = args.wait_ms })
  else
    place, err = args_of.where(target.bufnr, args)
  end
  if not place then
    return nil, err
  end
  return vim.tbl_extend('error', { bufnr = target.bufnr, path = target.shown }, place)
end

--- Returns a place as text for messages.
---@param spot mcp-tools.lsp.Spot
---@return string
function M.name(spot)
  return ('%s:%d:%d'):format(spot.path, spot.line, spot.column)
end

---@param answers { incomplete: string? }[]
---@return string? reason of the first incomplete answer
local function reason_of(answers)
  for _, answer in ipairs(answers) do
    if answer.incomplete then
      return answer.incomplete
    end
  end
end

--- Returns the note for answers that may be incomplete.
---@param answers { incomplete: string? }[]
---@return string?
function M.incomplete(answers)
  local reason = reason_of(answers)
  return reason and reason .. ', so this may be incomplete'
end

---@param each mcp-tools.lsp.Found
local function place_of(each)
  return { path = each.path, line = each.line, column = each.column, text = each.text }
end

--- Returns the places of a definition, declaration or the like.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args table
---@param method string
---@param what string for the message if there is none
---@return table? answer { total, places, withheld?, incomplete? }
---@return mcp-tools.Error? err
function M.locate(ctx, args, method, what)
  local spot, err = M.spot(ctx, args)
  if not spot then
    return nil, err
  end
  local answers
  answers, err =
    lsp.request_all(ctx, spot.bufnr, method, lsp.place(spot.bufnr, spot.line, spot.column), { every = true })
  if not answers then
    return nil, err
  end
  local items = locations.items(answers)
  if #items == 0 then
    local text = 'there is no %s for %s; line and column must be on a name'
    return nil, errors.new('not_found', text:format(what, M.name(spot)))
  end
  local found, withheld = locations.find(ctx, vim.list_slice(items, 1, args.limit))
  return {
    total = #items,
    places = vim.tbl_map(place_of, found),
    withheld = withheld,
    incomplete = M.incomplete(answers),
  }
end

---@param items mcp-tools.lsp.Item[]
---@param glob string?
---@param root string
---@return mcp-tools.lsp.Item[]
local function only(items, glob, root)
  if not glob then
    return items
  end
  local matches = glob_of.compile(glob)
  return vim.tbl_filter(function(item)
    local path = vim.uri_to_fname(item.uri)
    return matches(path:sub(#root + 2)) or matches(path)
  end, items)
end

---@param items mcp-tools.lsp.Item[]
---@return table<string, true>
local function uris_of(items)
  local uris = {}
  for _, item in ipairs(items) do
    uris[item.uri] = true
  end
  return uris
end

--- Returns the word at a place.
---@param spot mcp-tools.lsp.Spot
---@return string '' if there is none
function M.word(spot)
  local byte = position.byte(spot.text, spot.column - 1, 'utf-32') + 1
  local first = #strings.last_word(spot.text:sub(1, byte - 1))
  return spot.text:sub(byte - first):match('^[%w_\128-\255]*')
end

--- Returns the references to the symbol at a place.
---@param ctx mcp-tools.Ctx in a coroutine
---@param spot mcp-tools.lsp.Spot
---@param include_declaration boolean
---@return mcp-tools.lsp.Item[]? items
---@return mcp-tools.Error? err
---@return { by: string, incomplete: string? }? info `by`: the servers
function M.usages(ctx, spot, include_declaration)
  local at = lsp.place(spot.bufnr, spot.line, spot.column, { context = { includeDeclaration = include_declaration } })
  local over = vim.uv.hrtime() + DOUBT
  while true do
    local names = {}
    local answers, err = lsp.request_all(ctx, spot.bufnr, 'textDocument/references', function(client)
      table.insert(names, client.name)
      return at(client)
    end, { every = true })
    if not answers then
      return nil, err
    end
    local items = locations.items(answers)
    local doubt = vim.uv.hrtime() < over and watched_files.is_outdated(ctx, M.word(spot), uris_of(items))
    if not doubt then
      return items, nil, { by = table.concat(names, ', '), incomplete = reason_of(answers) }
    end
    server_state.pause(ctx, 200)
  end
end

--- Returns the answer of `lsp_references`.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args table
---@return table? answer
---@return mcp-tools.Error? err
function M.references(ctx, args)
  local spot, err = M.spot(ctx, args)
  local items, info
  if spot then
    items, err, info = M.usages(ctx, spot, args.include_declaration)
  end
  if not spot or not items then
    return nil, err
  end
  items = only(items, args.files, ctx.root)
  local found, withheld = locations.find(ctx, items)
  local answer = locations.answer(found, {
    limit = args.limit,
    offset = args.offset,
    narrow = 'files (a glob) or limit and offset give fewer',
  })
  if #items == 0 then
    answer.note = ('there are no references to %s; line and column must be on a name'):format(M.name(spot))
  end
  answer.withheld, answer.incomplete = withheld, M.incomplete({ info })
  return answer
end

return M
