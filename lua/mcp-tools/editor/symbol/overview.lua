--- Outlines of one file, several files, or a directory, as one answer of limited size.
---
--- An outline lists the symbols of a file, nested by indent: `Ledger [class] 25-67`. Symbols of one kind without
--- children share a line: `  post 33, close 41 [method]`.

local access = require('mcp-tools.privacy.access')
local errors = require('mcp-tools.errors')
local find = require('mcp-tools.editor.symbol.find')
local result = require('mcp-tools.editor.result')
local search_files = require('mcp-tools.editor.search.files')
local symbol = require('mcp-tools.editor.symbol')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

local CALLABLE = { ['function'] = true, method = true, constructor = true }
--- Kinds that shorter outlines omit.
local SMALL = {}
local KINDS = 'variable constant field property enum_member string number boolean array object event key'
for kind in KINDS:gmatch('%S+') do
  SMALL[kind] = true
end

--- Maximum number of lines, and bytes, of the source of one definition.
local MAX_LINES, MAX_SOURCE = 10, 160
--- Maximum length of a row, and of a name, in bytes.
local MAX_ROW, MAX_NAME = 160, 100

---@alias mcp-tools.LinesOf fun(first: integer, last: integer): string[] from 1

--- Returns a function that reads a line, and remembers the last one: several symbols may be on it.
---@param lines_of mcp-tools.LinesOf
---@return fun(number: integer): string?
function M.line_reader(lines_of)
  local known, line
  return function(number)
    if known ~= number then
      known, line = number, lines_of(number, number)[1]
    end
    return line
  end
end

--- Whether a text has an open bracket at its end.
---@param text string
local function is_open(text)
  local _, opened = text:gsub('[%(%[]', '')
  local _, closed = text:gsub('[%)%]]', '')
  return opened > closed
end

--- Returns the source line of a definition, joined with the next lines while a bracket is open.
---@param node mcp-tools.SymbolNode
---@param line_of fun(number: integer): string?
---@return string
function M.signature(node, line_of)
  local number = node.at[1] + 1
  local line = line_of(number) or ''
  if #line > MAX_SOURCE then -- other definitions may be on it
    local first = math.max(node.at[2] - MAX_SOURCE / 4, 0)
    line = utf8.repair(line:sub(first + 1, first + 2 * MAX_SOURCE))
  end
  local text = trim(line)
  local last = math.min(number + MAX_LINES, node.end_line)
  while number < last and #text < MAX_SOURCE and is_open(text) do
    number = number + 1
    local more = line_of(number) or ''
    text = text .. (text:find('[%(%[]$') and '' or ' ') .. trim(more:sub(1, MAX_SOURCE))
  end
  return (utf8.repair((utf8.cut((text:gsub('%c', ' ')), MAX_SOURCE))))
end

---@param node mcp-tools.SymbolNode
---@return boolean
function M.is_callable(node)
  return CALLABLE[node.kind] == true
end

--- Returns the lines of a symbol: `25-67`.
---@param node mcp-tools.SymbolNode
---@return string
function M.lines(node)
  return node.end_line > node.line and ('%d-%d'):format(node.line, node.end_line) or tostring(node.line)
end

---@param text string
---@return string
local function clean(text)
  return (utf8.repair((utf8.cut(text:gsub('%c', ' '), MAX_NAME))))
end

---@class mcp-tools.OutlineOpts
---@field depth integer? levels; default: all
---@field small boolean? false: without the kinds in `SMALL`

---@param node mcp-tools.SymbolNode
---@return boolean
local function is_leaf(node)
  return #node.children == 0 and (SMALL[node.kind] or CALLABLE[node.kind]) or false
end

--- Returns the rows of symbols of one level that have no children, by kind. Stops when an answer would be too large.
---@param list mcp-tools.SymbolNode[]
---@param opts mcp-tools.OutlineOpts
---@return table<string, string[]>
local function leaf_rows(list, opts)
  local by_kind, names, bytes = {}, {}, 0
  for _, node in ipairs(list) do
    if bytes > result.MAX_BYTES then
      break
    elseif is_leaf(node) and (opts.small ~= false or not SMALL[node.kind]) then
      local rows, text = by_kind[node.kind] or {}, ('%s %d'):format(clean(node.name), node.line)
      by_kind[node.kind] = rows
      local row = names[node.kind]
      if not row or #row + #text > MAX_ROW then
        table.insert(rows, '')
        row = nil
      end
      names[node.kind] = row and row .. ', ' .. text or text
      bytes = bytes + #text
      rows[#rows] = ('%s [%s]'):format(names[node.kind], node.kind)
    end
  end
  return by_kind
end

---@param list mcp-tools.SymbolNode[]
---@param opts mcp-tools.OutlineOpts
---@param out string[]|{ bytes: integer }
---@param level integer
local function add(list, opts, out, level)
  local leaves = leaf_rows(list, opts)
  local function insert(text)
    text = ('  '):rep(level) .. text
    table.insert(out, text)
    out.bytes = out.bytes + #text + 1
  end
  for _, node in ipairs(list) do
    if out.bytes > result.MAX_BYTES then
      break -- a shorter variant is used
    elseif is_leaf(node) then
      for _, row in ipairs(leaves[node.kind] or {}) do
        insert(row)
      end
      leaves[node.kind] = nil
    else
      insert(('%s [%s] %s'):format(clean(node.name), node.kind, M.lines(node)))
      if not opts.depth or level + 1 < opts.depth then
        add(node.children, opts, out, level + 1)
      end
    end
  end
end

--- Returns the outline of a file. Stops when an answer would be too large.
---@param tree mcp-tools.SymbolNode[]
---@param opts mcp-tools.OutlineOpts
---@return string[] rows with `bytes`, their size
function M.rows(tree, opts)
  local out = { bytes = 0 } ---@type table
  add(tree, opts, out, 0)
  return out
end

--- Returns the source of all symbols of an answer, if it is the same, so that it is named once.
---@param list { by: string? }[]
---@return string? by nil: there are several
function M.common_by(list)
  local by
  for _, each in ipairs(list) do
    if by and each.by and each.by ~= by then
      return nil
    end
    by = by or each.by
  end
  return by
end

--- Variants of an outline, from the longest to the shortest.
---@type { without: string?, opts: mcp-tools.OutlineOpts }[]
local VARIANTS = {
  { opts = {} },
  { without = 'variables and fields', opts = { small = false } },
  { without = 'more than the top level', opts = { depth = 1, small = false } },
}

---@class mcp-tools.Overview
---@field shown string
---@field by string?
---@field why string? why there is no outline
---@field unknown string? the filetype, if its symbols are not known
---@field count integer
---@field rows string[][] for each of `VARIANTS`

--- Creates all variants for a loaded file, which may be unloaded before the answer is assembled.
---@param each mcp-tools.SymbolSource
---@param pause fun() called between pieces of work
---@return mcp-tools.Overview
local function overview_of(each, pause)
  local bufnr, count, rows = each.bufnr, 0, {}
  local filetype, tick = vim.bo[bufnr].filetype, vim.api.nvim_buf_get_changedtick(bufnr)
  symbol_tree.each(each.file.tree, function()
    count = count + 1
    pause()
  end)
  for i, variant in ipairs(VARIANTS) do
    rows[i] = M.rows(each.file.tree, variant.opts)
    pause()
    if not vim.api.nvim_buf_is_loaded(bufnr) or vim.api.nvim_buf_get_changedtick(bufnr) ~= tick then
      return { shown = each.shown, why = 'it keeps changing', count = 0, rows = {} }
    end
  end
  return {
    shown = each.shown,
    by = symbol.by(each.file),
    unknown = each.file.by == 'nothing' and filetype or nil,
    count = count,
    rows = rows,
  }
end

---@param ctx mcp-tools.Ctx
---@param path string resolved
---@param serverless table<string, true>
---@return mcp-tools.Overview
local function of_path(ctx, path, serverless)
  local each, err = find.open(ctx, { path = path }, serverless)
  if not each then
    local why = err and err.message or 'it cannot be read'
    return { shown = access.shown(path, ctx.root), why = why, count = 0, rows = {} }
  end
  local made = overview_of(each, time_slice.of(ctx))
  find.close(each)
  return made
end

---@param head string
---@param body fun(variant: integer): string
---@param rest mcp-tools.Variant[] shorter ones
---@param narrow string how to get a smaller answer
---@return string
local function answer(head, body, rest, narrow)
  local variants = {}
  for i, variant in ipairs(VARIANTS) do
    variants[i] = {
      without = variant.without,
      text = function()
        return { head, body(i) }
      end,
    }
  end
  return result.longest(vim.list_extend(variants, rest), narrow)
end

--- Returns the overview of one buffer or file.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { path: string?, bufnr: integer? }
---@return string?
---@return mcp-tools.Error? err
function M.of_one(ctx, args)
  local each, err = find.open(ctx, args)
  if not each then
    return nil, err
  end
  local one = overview_of(each, time_slice.of(ctx))
  if one.why then
    return nil, errors.new('busy', ('%s: %s; try again'):format(each.shown, one.why))
  end
  local by = one.by and (' (by %s)'):format(one.by) or ''
  local head = ('%s, %d lines%s'):format(each.shown, vim.api.nvim_buf_line_count(each.bufnr), by)
  local text = answer(head, function(variant)
    return #one.rows[variant] > 0 and table.concat(one.rows[variant], '\n') or 'no symbols'
  end, {
    { text = ('%s\n%d symbols'):format(head, one.count), without = 'names' },
  }, 'find single ones with symbol_find')
  return each.file.why and ('%s\n(%s)'):format(text, each.file.why) or text
end

---@param list mcp-tools.Overview[]
---@param variant integer? nil: only counts
---@param by string? source that the first line names already
---@return string
local function text_of(list, variant, by)
  local out = {}
  for _, each in ipairs(list) do
    local tail = each.why and (': ' .. each.why) or ''
    if each.by and each.by ~= by then
      tail = tail .. (' (by %s)'):format(each.by)
    end
    if variant then
      table.insert(out, each.shown .. tail)
      for _, row in ipairs(each.rows[variant] or {}) do
        table.insert(out, '  ' .. row)
      end
    else
      table.insert(out, ('%s: %d symbols%s'):format(each.shown, each.count, tail))
    end
  end
  return table.concat(out, '\n')
end

---@param list mcp-tools.Overview[]
---@param head string
---@return string
local function answer_of_many(list, head)
  local by, total = M.common_by(list), 0
  for _, each in ipairs(list) do
    total = total + each.count
  end
  head = head .. (by and (' (by %s)'):format(by) or '')
  return answer(head, function(variant)
    return text_of(list, variant, by)
  end, {
    {
      without = 'names, only counts per file',
      text = function()
        return { head, text_of(list, nil, by) }
      end,
    },
    { text = ('%s\n%d symbols'):format(head, total), without = 'files, only the total' },
  }, 'narrow it with path, globs or limit')
end

--- Returns the overview of a directory or several files.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param list string[] paths as given
---@param opts { globs: string[]?, limit: integer, offset: integer }
---@return string?
---@return mcp-tools.Error? err
function M.of_many(ctx, list, opts)
  local files, seen, withheld = {}, {}, {}
  for _, path in ipairs(list) do
    local place, err = search_files.place(ctx, path)
    if not place then
      return nil, err
    end
    local found, second = search_files.list(ctx, place, opts.globs)
    if not found then
      return nil, second --[[@as mcp-tools.Error]]
    end
    local access_filter, kept_back = search_files.access_filter(ctx, place)
    local pause = time_slice.of(ctx)
    for _, each in ipairs(found) do
      local resolved = access_filter(each)
      if resolved and not seen[resolved] then
        seen[resolved] = true
        table.insert(files, resolved)
      end
      pause()
    end
    vim.list_extend(withheld, kept_back)
  end
  if #files == 0 then
    local text = search_files.withheld_text(withheld)
    return nil, errors.new('not_found', 'there are no files to outline' .. (text and '; ' .. text or ''))
  end
  local made, last, serverless = {}, math.min(#files, opts.offset + opts.limit), {}
  local unknown, filetypes = 0, {}
  for i = opts.offset + 1, last do
    local one = of_path(ctx, files[i], serverless)
    if one.count > 0 or one.why then
      table.insert(made, one)
    elseif one.unknown then
      unknown = unknown + 1
      filetypes[one.unknown == '' and 'no filetype' or one.unknown] = true
    end
    ctx:progress(i - opts.offset, last - opts.offset)
  end
  local head = ('%d files'):format(#files)
  if opts.offset > 0 or last < #files then
    head = ('files %d-%d of %d'):format(opts.offset + 1, last, #files)
    head = head .. (last < #files and ('; offset=%d continues'):format(last) or '')
  end
  if unknown > 0 then
    local names = vim.tbl_keys(filetypes)
    table.sort(names)
    local rest = '%s; %d of them have neither a language server nor a treesitter parser (%s)'
    head = rest:format(head, unknown, table.concat(names, ', '))
  end
  local text = search_files.withheld_text(withheld)
  return answer_of_many(made, head .. (text and '; ' .. text or ''))
end

return M
