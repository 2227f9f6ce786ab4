--- Finds symbols by name in the project, a directory or a file.

local arguments = require('mcp-tools.editor.arguments')
local errors = require('mcp-tools.errors')
local find = require('mcp-tools.editor.symbol.find')
local result = require('mcp-tools.editor.result')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local overview = require('mcp-tools.editor.symbol.overview')
local search_files = require('mcp-tools.editor.search.files')
local symbol = require('mcp-tools.editor.symbol')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

---@class mcp-tools.SymbolListing
---@field shown string
---@field by string
---@field count integer
---@field rows { head: string, body: string }[]

---@param hits mcp-tools.Hits
---@param node mcp-tools.SymbolNode
---@param line_of fun(number: integer): string?
---@param body boolean
local function entry(hits, node, line_of, body)
  local name = symbol_tree.of(node, hits.file.tree)
  local source = not body and overview.is_callable(node) and overview.signature(node, line_of) or ''
  return {
    head = ('  %s [%s] %s%s'):format(name, node.kind, overview.lines(node), source ~= '' and ': ' .. source or ''),
    body = body and (utf8.repair(table.concat(hits.lines_of(node.line, node.end_line), '\n'))) or '',
  }
end

--- Returns the requested page of symbols, with their current text.
---@param hits mcp-tools.Hits[]
---@param opts { limit: integer, offset: integer, body: boolean? }
---@param pause fun()
---@return mcp-tools.SymbolListing[]
local function listed(hits, opts, pause)
  local list, at = {}, 0
  for _, each in ipairs(hits) do
    local listing = { shown = each.shown, by = symbol.by(each.file), count = #each.nodes, rows = {} }
    local line_of = overview.line_reader(each.lines_of)
    for _, node in ipairs(each.nodes) do
      at = at + 1
      if at > opts.offset and at <= opts.offset + opts.limit then
        table.insert(listing.rows, entry(each, node, line_of, opts.body == true))
        pause()
      end
    end
    table.insert(list, listing)
  end
  return list
end

---@param list mcp-tools.SymbolListing[]
---@param total integer
---@param opts { limit: integer, offset: integer, body: boolean? }
---@param notes string[]
---@return string
local function text_of(list, total, opts, notes)
  local by = overview.common_by(list)
  local head = ('%s%s'):format(result.count(total, 'symbol'), by and (' (by %s)'):format(by) or '')
  head = result.with_range(head, opts, total)
  head = table.concat({ head, unpack(notes) }, '; ')
  local function rows(body)
    local out = { head }
    for _, each in ipairs(list) do
      if #each.rows > 0 then
        table.insert(out, each.shown .. (by and '' or (' (by %s)'):format(each.by)))
      end
      for _, row in ipairs(each.rows) do
        table.insert(out, row.head)
        if body then
          table.insert(out, row.body)
        end
      end
    end
    return out
  end
  local counts = { head }
  for _, each in ipairs(list) do
    table.insert(counts, ('%s: %d'):format(each.shown, each.count))
  end
  return result.longest({
    { text = opts.body and rows(true) or nil },
    { text = rows(false), without = opts.body and 'bodies; ask for one symbol' or nil },
    { text = counts, without = 'names, only counts per file' },
    { text = head, without = 'files, only the total' },
  }, 'narrow it with path, kinds or limit')
end

return {
  name = 'symbol_find',
  title = 'Find symbol',
  description = 'Finds where classes, functions, methods or variables are defined, by name, in the project or a file.'
    .. ' Use it instead of grep for `def` or `class`. With `body` it returns the source.',
  search_hint = 'go to definition, workspace symbols, where defined, read a function',
  args = {
    symbol = {
      type = 'string',
      description = 'Name path: `method`, `Class/method`, `/Class`, `name[2]`',
      required = true,
      minLength = 1,
    },
    path = { type = 'string', description = 'File or directory; default: the project' },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
    substring = { type = 'boolean', description = 'Match part of the last name, case-insensitive', default = false },
    kinds = {
      type = 'array',
      items = { type = 'string' },
      description = 'Such as class, function, method, variable',
    },
    body = { type = 'boolean', description = 'Include the source text', default = false },
    limit = arguments.limit('results', 50, 1000),
    offset = { type = 'integer', description = 'Results to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  always_load = true,
  run = function(ctx, args)
    local path = errors.unwrap(symbol_tree.parse(args.symbol, 'symbol'))
    local kinds = errors.unwrap(symbol_tree.read_kinds(args.kinds or {}, symbol_tree.MORE_KINDS))
    args.kinds = #kinds > 0 and kinds or nil
    local place = not args.bufnr and errors.unwrap(search_files.place(ctx, args.path))
    local found = place and place.is_directory and errors.unwrap(find.in_directory(ctx, path, place, args))
      or errors.unwrap(find.in_file(ctx, path, args))
    local notes = {}
    if found.incomplete then
      table.insert(notes, found.incomplete .. ', so there may be more')
    end
    if found.skipped > 0 then
      table.insert(notes, ('%d more files with that word were not searched'):format(found.skipped))
    end
    if found.total == 0 and found.files then
      table.insert(notes, find.searched_text(found))
    end
    if found.near then
      table.insert(notes, 'there is ' .. found.near)
    end
    local list = listed(found.hits, args, time_slice.of(ctx))
    find.close_all(found)
    return text_of(list, found.total, args, notes)
  end,
}
