--- A change of one symbol: found, edited in one undo block, written where nobody has the file open.
---
--- Receives: `symbol`, `path` or `bufnr`, `changedtick` arguments; how the lines change.
--- Sends: what has changed, or why nothing has; for the person the difference beforehand.
--- Does not know about: what the change is.

local access = require('mcp-tools.files.access')
local after_edit = require('mcp-tools.editor.diagnostics.after_edit')
local ahead = require('mcp-tools.files.ahead')
local buffers = require('mcp-tools.editor.buffer')
local disk_lines = require('mcp-tools.editor.buffer.disk_lines')
local edit = require('mcp-tools.editor.edit')
local edit_preview = require('mcp-tools.editor.edit.preview')
local errors = require('mcp-tools.errors')
local in_text = require('mcp-tools.editor.symbol.in_text')
local name_path = require('mcp-tools.editor.symbol.name_path')
local position = require('mcp-tools.editor.lsp.position')
local project = require('mcp-tools.files.project')
local resolve = require('mcp-tools.editor.symbol.resolve')
local symbol = require('mcp-tools.editor.symbol')
local text_edits = require('mcp-tools.editor.edit.text_edits')
local unified_diff = require('mcp-tools.editor.result.unified_diff')

local api = vim.api

local M = {}

--- Bytes. Larger files are not looked through while the person waits.
local MAX_PREVIEW = 512 * 1024

--- Maximum length of a new text, in characters.
M.MAX_TEXT = 500000

--- How lines change: `make(lines, place, filetype)`.
---@alias mcp-tools.SymbolEdits fun(lines: string[], at: mcp-tools.SymbolPlace, filetype: string): mcp-tools.Edit[]

--- Arguments that all changes of symbols share.
---@param more table
---@return table
function M.args(more)
  return vim.tbl_extend('error', {
    symbol = {
      type = 'string',
      description = 'Name path: `Class/method`, `/Class`, `name[2]`',
      required = true,
      minLength = 1,
    },
    path = { type = 'string', description = 'File that defines it' },
    bufnr = { type = 'integer', description = 'Buffer that defines it, instead of path', minimum = 0 },
    changedtick = {
      type = 'integer',
      description = 'Of the text that was read: refused when it has changed since',
      minimum = 0,
    },
    diagnostics = after_edit.ARG,
  }, more)
end

---@param lines string[]
---@param node mcp-tools.SymbolNode
---@return mcp-tools.SymbolPlace
local function place_of(lines, node)
  local row, col, end_row, end_col = unpack(node.range)
  end_row = math.min(end_row, #lines - 1)
  if end_col == 0 and end_row > row then -- it ends with the line before
    end_row, end_col = end_row - 1, math.huge
  end
  return {
    row = row,
    col = position.byte(lines[row + 1] or '', col, node.units),
    end_row = end_row,
    end_col = position.byte(lines[end_row + 1] or '', end_col, node.units),
  }
end

--- Finds the symbol that arguments mean.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args table
---@return mcp-tools.PickedSymbol?
---@return mcp-tools.Error? err
function M.find(ctx, args)
  if (args.path == nil) == (args.bufnr == nil) then
    return nil, errors.new('validation_error', 'give exactly one of path and bufnr')
  end
  local found, err = resolve.find(ctx, args)
  if not found then
    return nil, err
  end
  err = edit.refusal(found.source.bufnr, args.changedtick)
  if err then
    return nil, err
  end
  return found
end

--- The lines of a symbol's file, and where it is in them.
---@param found mcp-tools.PickedSymbol
---@return string[] lines
---@return mcp-tools.SymbolPlace
---@return string filetype
function M.place(found)
  local bufnr = found.source.bufnr
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  return lines, place_of(lines, found.node), vim.bo[bufnr].filetype
end

--- Applies edits to a symbol's file.
---@param ctx mcp-tools.Ctx in a coroutine
---@param found mcp-tools.PickedSymbol
---@param edits mcp-tools.Edit[]
---@param args { diagnostics: boolean? }
---@return table? answer
---@return mcp-tools.Error? err
function M.apply(ctx, found, edits, args)
  local bufnr = found.source.bufnr
  local tick = found.source.file.changedtick
  local items = { { bufnr = bufnr, edits = edits, changedtick = tick, write = buffers.is_unseen(bufnr) } }
  local files, err = ctx:await(function(done)
    edit.apply_all(items, { ctx = ctx }, done)
  end)
  if not files then
    return nil, err
  end
  local file = files[1]
  return after_edit.add(ctx, args, {
    path = found.source.shown,
    bufnr = bufnr,
    symbol = found.path,
    by = found.by,
    applied = file.hunks,
    changedtick = file.changedtick,
    written = file.written,
    rejected = files.rejected,
    edited_by_person = files.edited,
    note = #file.hunks == 0 and 'the text was like that already' or nil,
  }, bufnr)
end

-- What the person sees beforehand --------------------------------------------------------------------------------

---@param bufnr integer?
---@param path string?
---@param again? fun()
---@return string[]? lines
---@return string filetype_or_fault
---@return string? code
local function text_of(bufnr, path, again)
  if bufnr and buffers.size(bufnr) > MAX_PREVIEW and not symbol.now(bufnr) then
    return nil, 'the text is too large'
  elseif bufnr then
    return api.nvim_buf_get_lines(bufnr, 0, -1, false), vim.bo[bufnr].filetype
  end
  local lines, fault, code = disk_lines.now(path or '', nil, again, MAX_PREVIEW)
  if not lines then
    return nil, fault or 'the file is too large', code
  end
  return lines, vim.filetype.match({ filename = path, contents = lines }) or ''
end

--- The difference that a change would make. It is made at once, so that a symbol that nobody has asked the server for
--- yet is found by the text alone; then it says so.
---@param args table
---@param make mcp-tools.SymbolEdits
---@param again? fun() called when a file has been read that was not known
---@return string?
---@return mcp-tools.Error? err
function M.preview(args, make, again)
  local target, err = buffers.find(args)
  local path
  if target then
    path, err = name_path.parse(args.symbol, 'symbol')
    local refused = path and target.bufnr and edit.refusal(target.bufnr, args.changedtick)
    if refused then
      return nil, refused
    end
  end
  if not target or not path then
    return nil, err
  elseif not target.bufnr and target.path and not vim.uv.fs_stat(target.path) then
    return nil, errors.new('not_found', ('there is no file %s'):format(access.shown(target.path, project.root())))
  end
  local lines, filetype, code = text_of(target.bufnr, target.path, again)
  if code == ahead.READING then
    return edit_preview.READING
  elseif not lines then
    return ('The difference cannot be shown: %s'):format(filetype)
  end
  local file = target.bufnr and symbol.now(target.bufnr)
  local note = ''
  if not file then
    in_text.of_text(lines, filetype, function(found)
      file = found
    end, true)
    note = file and ('Found by %s; a language server may draw its borders otherwise.\n'):format(symbol.by(file)) or ''
  end
  local root = project.root()
  local name = target.path and access.shown(target.path, root) or ('buffer %d'):format(target.bufnr)
  local node
  node, err = name_path.one(file.tree, path, 'symbol', name)
  if not node and note == '' then
    return nil, err
  elseif not node then -- a server may know it
    return note .. ('The difference cannot be shown: %s'):format(err.message)
  end
  local list
  list, err = text_edits.ordered(make(lines, place_of(lines, node), filetype), #lines, function(row)
    return lines[row + 1]
  end)
  if not list then
    return nil, err
  end
  local names = { old = 'a/' .. name, new = 'b/' .. name, context = edit_preview.CONTEXT }
  local diff = unified_diff.of(lines, text_edits.applied(lines, list), names)
  local shown
  shown, err = edit_preview.shown(diff)
  return shown and shown .. note, err
end

return M
