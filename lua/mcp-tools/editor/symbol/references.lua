--- References to a symbol, with the symbols that contain them, from the language server or otherwise by a text search.

local args_of = require('mcp-tools.editor.lsp.args')
local errors = require('mcp-tools.errors')
local file_type = require('mcp-tools.files.filetype')
local find = require('mcp-tools.editor.symbol.find')
local result = require('mcp-tools.editor.result')
local locations = require('mcp-tools.editor.lsp.locations')
local navigation = require('mcp-tools.editor.lsp.navigation')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local search = require('mcp-tools.editor.search')
local symbol = require('mcp-tools.editor.symbol')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- Maximum number of files to load so that their server returns the symbols around references.
local MAX_LOADED = 10

---@class mcp-tools.ReferenceRow one line
---@field line integer
---@field text string?
---@field around string? name path of the symbol that contains it

---@class mcp-tools.ReferenceFile
---@field path string
---@field count integer
---@field rows mcp-tools.ReferenceRow[]
---@field why string? why its lines are withheld

---@class mcp-tools.References
---@field name string name path, or the name at the place
---@field files mcp-tools.ReferenceFile[]
---@field total integer
---@field by string
---@field guessed boolean found by a text search, so some may be of other symbols
---@field incomplete string?

---@param ctx mcp-tools.Ctx
---@param name string
---@return mcp-tools.lsp.Item[]?
---@return mcp-tools.Error? err
local function by_word(ctx, name)
  local word = symbol_tree.word(name)
  if not word then
    local text = 'symbol: the file has no language server, and %s is not a word to search for; use file_search'
    return nil, errors.new('not_found', text:format(name))
  end
  local found, err = search.find(ctx, { query = word, word = true }, {})
  local items = {}
  for _, file in ipairs(found and found.files or {}) do
    local uri = vim.uri_from_fname(file.path)
    for _, match in ipairs(file.matches) do
      local at = { line = match.row, character = match.col }
      table.insert(items, { uri = uri, range = { start = at, ['end'] = at }, encoding = 'utf-8' })
    end
  end
  return found and items, err
end

---@param item mcp-tools.lsp.Item
---@return string
local function key_of(item)
  return ('%s %d %d'):format(item.uri, item.range.start.line, item.range.start.character)
end

--- Removes the definition. `includeDeclaration = false` is not enough: some servers then omit the requested position.
---@param ctx mcp-tools.Ctx
---@param spot mcp-tools.lsp.Spot
---@param items mcp-tools.lsp.Item[]
---@return mcp-tools.lsp.Item[]
local function without_definition(ctx, spot, items)
  local found, defined = navigation.places(ctx, spot, 'textDocument/definition', 10), {}
  for _, each in ipairs(found and found.items or {}) do
    defined[key_of(each)] = true
  end
  return vim.tbl_filter(function(item)
    return not defined[key_of(item)]
  end, items)
end

---@param path string
---@return string?
local function extension_of(path)
  return path:match('%.([^./]+)$')
end

--- Returns the symbols of a file with references.
---@param ctx mcp-tools.Ctx
---@param path string
---@param text string? nil: the file is open
---@param loads { extension: string?, left: integer } number of files that may still be loaded
---@return mcp-tools.SymbolFile?
local function symbols_of(ctx, path, text, loads)
  if not text then
    local source = find.open(ctx, { path = path })
    return source and source.file
  end
  local file = symbol.of_text(ctx, vim.split(text, '\n', { plain = true }), file_type.of(path))
  if file.by == 'nothing' and loads.left > 0 and loads.extension and extension_of(path) == loads.extension then
    loads.left = loads.left - 1
    local source = find.open(ctx, { path = path }) -- stays loaded for the next call
    return source and source.file or file
  end
  return file
end

--- Finds the references to a symbol.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param spot mcp-tools.lsp.Spot
---@param picked mcp-tools.PickedSymbol? the symbol, if `spot` is its definition
---@param except? { first: integer, last: integer } lines of its own file to ignore
---@return mcp-tools.References?
---@return mcp-tools.Error? err
function M.find(ctx, spot, picked, except)
  local own, guessed = picked and picked.source.path, false
  local items, err, info = navigation.references(ctx, spot, picked == nil)
  if not items and err and err.code == 'not_found' then
    guessed = true
    items, err = by_word(ctx, picked and picked.node.name or args_of.word(spot))
  end
  if not items then
    return nil, err
  end
  if not picked and not guessed then
    items = without_definition(ctx, spot, items)
  end
  local texts = {} ---@type table<string, string>
  local places, withheld = locations.find(ctx, items, {
    on_text = function(path, text)
      texts[path] = text
    end,
  })
  local why = {}
  for _, each in ipairs(withheld or {}) do
    why[each.path] = each.why
  end
  local loads = { extension = not guessed and extension_of(spot.path) or nil, left = MAX_LOADED }
  local made = {
    name = picked and picked.path or args_of.word(spot),
    files = {},
    total = 0,
    guessed = guessed,
    by = info and info.by or 'text search',
    incomplete = info and info.incomplete,
  }
  local function is_excluded(each)
    if not each.file or each.file ~= own then
      return not each.file
    end
    return each.line == spot.line and (guessed or each.column == spot.column)
      or except and except.first <= each.line and each.line <= except.last
  end
  local pause, file, symbols, names = time_slice.of(ctx), nil, nil, {}
  for _, each in ipairs(places) do
    pause()
    if not is_excluded(each) then
      if not file or file.path ~= each.path then
        file = { path = each.path, count = 0, rows = {}, why = why[each.path] }
        table.insert(made.files, file)
        symbols = not file.why and each.raw and symbols_of(ctx, each.file, texts[each.file], loads) or nil
        texts[each.file] = nil
      end
      file.count, made.total = file.count + 1, made.total + 1
      local last = file.rows[#file.rows]
      if not last or last.line ~= each.line then
        local around = symbols and symbol_tree.around(symbols.tree, each.line)
        if around and not names[around] then
          names[around] = symbol_tree.of(around, symbols.tree)
        end
        table.insert(file.rows, { line = each.line, text = each.text, around = around and names[around] or nil })
      end
    end
  end
  return made
end

---@param found mcp-tools.References
---@param opts { limit: integer, offset: integer }
---@param with_text boolean
---@param head string
---@return string[]
local function rows_of(found, opts, with_text, head)
  local out, skipped, last = { head }, 0, opts.offset + opts.limit
  for _, file in ipairs(found.files) do
    local is_named, around = false, nil
    for _, row in ipairs(file.rows) do
      if skipped >= opts.offset and skipped < last then
        if not is_named then
          table.insert(out, file.path .. (file.why and (' (lines withheld: %s)'):format(file.why) or ''))
          is_named = true
        end
        local name = row.around and row.around ~= around and (' ' .. row.around) or ''
        around = row.around
        table.insert(out, ('  %d%s%s'):format(row.line, name, with_text and row.text and ': ' .. row.text or ''))
      end
      skipped = skipped + 1
    end
  end
  return out
end

--- Returns references as text: each file once, then `line around: text` for each line.
---@param found mcp-tools.References
---@param opts { limit: integer, offset: integer }
---@return string
function M.text(found, opts)
  local lines = 0
  for _, file in ipairs(found.files) do
    lines = lines + #file.rows
  end
  local head = ('%s to %s in %s (by %s)'):format(
    result.count(found.total, 'reference'),
    found.name,
    result.count(#found.files, 'file'),
    found.by
  )
  if found.guessed then
    head = head .. '; without a language server, so other symbols of that name, strings and comments may be included'
  elseif found.incomplete then
    head = ('%s; %s, so there may be more'):format(head, found.incomplete)
  end
  local last = math.min(opts.offset + opts.limit, lines)
  if opts.offset > 0 or last < lines then
    head = ('%s; lines %d-%d of %d'):format(head, math.min(opts.offset + 1, last), last, lines)
    head = head .. (last < lines and (', offset=%d continues'):format(last) or '')
  end
  local counts = { head }
  for _, file in ipairs(found.files) do
    table.insert(counts, ('%s: %d'):format(file.path, file.count))
  end
  return result.longest({
    { text = rows_of(found, opts, true, head) },
    { text = rows_of(found, opts, false, head), without = 'the text of the lines' },
    { text = counts, without = 'lines, only counts per file' },
    { text = head, without = 'files, only the total' },
  }, 'narrow it with limit and offset')
end

return M
