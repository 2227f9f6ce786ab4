--- Changes one symbol: finds it, previews the change for approval, applies it in one undo block, and saves the file
--- unless the user has it open.

local access = require('mcp-tools.privacy.access')
local after_edit = require('mcp-tools.editor.diagnostics.after_edit')
local edit_answer = require('mcp-tools.editor.diagnostics.edit_answer')
local read = require('mcp-tools.privacy.read')
local background = require('mcp-tools.editor.background')
local buffers = require('mcp-tools.editor.buffer')
local contents = require('mcp-tools.editor.buffer.contents')
local edit = require('mcp-tools.editor.edit')
local edit_preview = require('mcp-tools.editor.edit.preview')
local errors = require('mcp-tools.errors')
local find = require('mcp-tools.editor.symbol.find')
local lru = require('mcp-tools.util.lru')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local position = require('mcp-tools.editor.position')
local project = require('mcp-tools.instances.project')
local symbol = require('mcp-tools.editor.symbol')
local strings = require('mcp-tools.util.strings')
local symbol_edits = require('mcp-tools.editor.symbol.edits')
local text_edits = require('mcp-tools.editor.text.edits')
local treesitter = require('mcp-tools.editor.treesitter')

local api = vim.api

local M = {}

--- Keywords that a new definition must also have before the name: the name alone may be a use.
local KEYWORDS = {}
for word in ('def class function func fn struct interface enum trait type module sub proc'):gmatch('%l+') do
  KEYWORDS[word] = true
end

--- Approval text until the symbol has been found.
local SEARCHING = 'The diff appears here when the symbol has been found.'

--- Maximum length of a new text, in characters.
M.MAX_TEXT = 500000

--- Returns the edits, or why there are none.
---@alias mcp-tools.SymbolEdits
---| fun(lines: string[], place: mcp-tools.SymbolPlace, args: table): mcp-tools.Edit[]?, string?

--- Returns the arguments that all changes of symbols share.
---@param more table
---@return table
function M.args(more)
  return vim.tbl_extend('error', {
    symbol = {
      type = 'string',
      description = 'Name path: `method`, `Class/method`, `/Class`, `name[2]`',
      required = true,
      minLength = 1,
    },
    path = { type = 'string', description = 'File or directory' },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
    diagnostics = after_edit.ARG,
  }, more)
end

--- Returns the range of a symbol in bytes.
---@param lines string[]
---@param node mcp-tools.SymbolNode
---@return mcp-tools.TextRange
local function range_of(lines, node)
  local row, col, end_row, end_col = unpack(node.range)
  end_row = math.min(end_row, #lines - 1)
  if end_col == 0 and end_row > row then -- it ends with the previous line
    end_row, end_col = end_row - 1, math.huge
  end
  return {
    row = row,
    col = position.byte(lines[row + 1] or '', col, node.units),
    end_row = end_row,
    end_col = position.byte(lines[end_row + 1] or '', end_col, node.units),
  }
end

---@param lines string[]
---@param file mcp-tools.SymbolFile
---@param node mcp-tools.SymbolNode
---@param filetype string
---@param root TSNode?
---@return mcp-tools.SymbolPlace
local function place_of(lines, file, node, filetype, root)
  local ends = {}
  for _, each in ipairs(node.parent and node.parent.children or file.tree) do
    ends[each.end_line - 1] = true
  end
  local opts = { root = root, filetype = filetype, name_row = node.at[1], ends = ends }
  return symbol_edits.extent(lines, range_of(lines, node), opts)
end

--- Finds the symbol that arguments identify, and checks that its buffer can be changed.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return mcp-tools.PickedSymbol?
---@return mcp-tools.Error? err
local function find_symbol(ctx, args)
  local found, err = find.one(ctx, args)
  err = err or edit.refusal(found.source.bufnr)
  return not err and found or nil, err
end

--- Edits that were shown for approval and run if the text is unchanged: { text, edits }.
local previewed = lru(32)
--- Symbol → file that was shown for approval, for calls without a path.
local shown_files = lru(32)

---@param target mcp-tools.Target
---@param args table
---@return string
local function key_of(target, args)
  return table.concat({
    target.path or target.bufnr,
    args.symbol,
    args.definition or '',
    args.body or '',
    args.text or '',
    args.position or '',
  }, '\0')
end

--- Checks that a new text defines the symbol that it replaces.
---@param ctx mcp-tools.Ctx
---@param lines string[]
---@param node mcp-tools.SymbolNode
---@param place mcp-tools.SymbolPlace
---@param definition string
---@param list mcp-tools.Edit[]
---@param filetype string
---@return boolean
local function defines(ctx, lines, node, place, definition, list, filetype)
  local name = symbol_tree.word(node.name) or node.name
  local line = lines[place.name_row + 1] or ''
  local keyword = line:match('^.*%f[%w_](%l+)%s+' .. vim.pesc(name))
  local before = keyword and KEYWORDS[keyword] and '%f[%w_]' .. keyword .. '%s+' or ''
  if not definition:find(before .. strings.word_pattern(name)) then
    return false
  end
  local function contains_definition(text, last)
    return symbol_tree.each(symbol.of_text(ctx, text, filetype).tree, function(each)
      local has_name = (symbol_tree.word(each.name) or each.name) == name
      return has_name and each.at[1] >= place.whole.row and each.at[1] <= last
    end) == true
  end
  if not contains_definition(lines, place.whole.end_row) then -- only the server finds it, not the syntax tree
    return true
  end
  local replacements = text_edits.ordered(vim.deepcopy(list), #lines, function(row)
    return lines[row + 1]
  end)
  local new = text_edits.applied(lines, replacements or {})
  return contains_definition(new, place.whole.end_row + #new - #lines)
end

--- Returns the extent of a symbol's definition and of its body.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param found mcp-tools.PickedSymbol
---@param lines string[] of its buffer
---@return mcp-tools.SymbolPlace
function M.place(ctx, found, lines)
  local filetype = vim.bo[found.source.bufnr].filetype
  local lang = treesitter.language(filetype)
  local root = lang and treesitter.parse_narrow(ctx, table.concat(lines, '\n') .. '\n', lang) or nil
  return place_of(lines, found.source.file, found.node, filetype, root)
end

--- Returns the edits for a symbol.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param found mcp-tools.PickedSymbol
---@param args table
---@param make mcp-tools.SymbolEdits
---@return mcp-tools.Edit[]?
---@return mcp-tools.Error? err
---@return string? text to which they apply
local function edits_of(ctx, found, args, make)
  local bufnr = found.source.bufnr
  local lines, filetype = api.nvim_buf_get_lines(bufnr, 0, -1, false), vim.bo[bufnr].filetype
  local text = table.concat(lines, '\n') .. '\n'
  local before = previewed:get(key_of(found.source, args))
  if before and before.text == text then
    return before.edits, nil, text
  end
  local known = not args.path and not args.bufnr and shown_files:get(args.symbol)
  shown_files:set(args.symbol, nil)
  if known and known ~= found.source.path then
    local moved = 'symbol: %s has moved to another file since the diff was shown; call again'
    return nil, errors.new('stale', moved:format(found.path))
  end
  local place = M.place(ctx, found, lines)
  if args.body and symbol_edits.has_signature(lines, place, args.body) then
    args = vim.tbl_extend('force', args, { definition = args.body })
  end
  local list, why = make(lines, place, args)
  local fault = 'symbol: %s was not changed: %s; use file_edit'
  if not list then
    return nil, errors.new('tool_error', fault:format(found.path, why))
  elseif args.definition and not defines(ctx, lines, found.node, place, args.definition, list, filetype) then
    fault = 'definition: does not define %s; include its signature, or pass only `body`. symbol_rename renames'
    return nil, errors.new('validation_error', fault:format(found.path))
  end
  return list, nil, text
end

--- Applies edits to a symbol's file.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param found mcp-tools.PickedSymbol
---@param edits mcp-tools.Edit[]
---@param args { diagnostics: boolean? }
---@return table? answer
---@return mcp-tools.Error? err
local function apply(ctx, found, edits, args)
  local bufnr = found.source.bufnr
  local tick = found.source.file.changedtick
  local items = { { bufnr = bufnr, edits = edits, changedtick = tick, write = buffers.is_unseen(bufnr) } }
  local files, err = ctx:await(function(done)
    edit.apply_all(items, { ctx = ctx }, done)
  end)
  if not files then
    return nil, err
  end
  local value = edit_answer.of(ctx, args, files)
  value.symbol, value.by = found.path, found.by
  return value
end

--- Computes the edits while the call waits for approval, then requests the preview again.
---@param args table
---@param make mcp-tools.SymbolEdits
---@param again fun(err: mcp-tools.Error?) computes the preview again
local function prepare(args, make, again)
  shown_files:set(args.symbol, nil)
  background.prepare(function(ctx)
    local found, err = find_symbol(ctx, args)
    if not found then
      return err
    end
    local edits, text
    edits, err, text = edits_of(ctx, found, args, make)
    if edits then
      previewed:set(key_of(found.source, args), { text = text, edits = edits })
      shown_files:set(args.symbol, not args.path and not args.bufnr and found.source.path or nil)
    end
    find.close(found.source)
    return err
  end, again)
end

--- Returns the lines of a file, or nil if that requires waiting.
---@param target mcp-tools.Target
---@param record { text: string }
---@return string[]?
local function lines_of(target, record)
  if target.bufnr and api.nvim_buf_is_loaded(target.bufnr) then
    return api.nvim_buf_get_lines(target.bufnr, 0, -1, false)
  end
  local lines, _, code = contents.lines_on_disk(target.path or '')
  return lines or code == read.READING and vim.split(record.text:sub(1, -2), '\n', { plain = true }) or nil
end

--- Returns the diff of a change. The call applies the same edits if the text is unchanged.
---@param args table
---@param make mcp-tools.SymbolEdits
---@param again? fun(err: mcp-tools.Error?) called when the diff is known
---@return string?
---@return mcp-tools.Error? err
local function preview(args, make, again)
  local path, err = symbol_tree.parse(args.symbol, 'symbol')
  if not path then
    return nil, err
  end
  local target
  local place = args.path or not args.bufnr and shown_files:get(args.symbol) or nil
  if place or args.bufnr then
    target, err = buffers.find({ path = place, bufnr = args.bufnr })
    if not target then
      return nil, err
    elseif not target.bufnr and target.path and not vim.uv.fs_stat(target.path) then
      return nil, errors.new('not_found', ('there is no file %s'):format(access.shown(target.path, project.root())))
    end
    err = target.bufnr and edit.refusal(target.bufnr)
    if err then
      return nil, err
    end
  end
  local record = target and previewed:get(key_of(target, args))
  local lines = record and lines_of(target, record)
  if not record or not lines or record.text ~= table.concat(lines, '\n') .. '\n' then
    if again then
      prepare(args, make, again)
    end
    return SEARCHING
  end
  local name = target.path and access.shown(target.path, project.root()) or ('buffer %d'):format(target.bufnr)
  local names = { old = 'a/' .. name, new = 'b/' .. name, context = edit_preview.CONTEXT }
  local text
  text, err = text_edits.unified(lines, vim.deepcopy(record.edits), names)
  if not text then
    return nil, err
  end
  return edit_preview.shown(text)
end

--- Returns the handlers of a tool that changes a symbol.
---@param make mcp-tools.SymbolEdits
---@param refusal? fun(ctx: mcp-tools.Ctx, found: mcp-tools.PickedSymbol, edits: mcp-tools.Edit[]): mcp-tools.Error?
---@return fun(args: table, again?: fun(err: mcp-tools.Error?)): string?, mcp-tools.Error? preview
---@return fun(ctx: mcp-tools.Ctx, args: table): table?, mcp-tools.Error? run
function M.handlers(make, refusal)
  return function(args, again)
    return preview(args, make, again)
  end, function(ctx, args)
    local found, err = find_symbol(ctx, args)
    local edits
    if found then
      edits, err = edits_of(ctx, found, args, make)
    end
    if edits and refusal then
      err = refusal(ctx, found, edits)
    end
    if err then
      return nil, err
    end
    return apply(ctx, found, edits, args)
  end
end

return M
