--- Returns the nested symbols of a file; compatible with guill/mcp-tools.nvim, with children and 1-based lines.

local args_of = require('mcp-tools.editor.lsp.args')
local errors = require('mcp-tools.errors')
local lsp = require('mcp-tools.editor.lsp')
local position = require('mcp-tools.editor.position')
local server_text = require('mcp-tools.editor.lsp.server_text')
local time_slice = require('mcp-tools.util.time_slice')

--- Maximum size of an answer, in bytes; larger ones have fewer levels.
local MAX_BYTES = 48000

---@class mcp-tools.lsp.Tree
---@field bufnr integer
---@field encoding mcp-tools.lsp.Encoding
---@field left integer number of symbols that may still be listed
---@field total integer
---@field bytes integer size of the listed ones
---@field pause fun() called between pieces of work

---@param tree mcp-tools.lsp.Tree
---@param at lsp.Position
local function position_of(tree, at)
  local line = vim.api.nvim_buf_get_lines(tree.bufnr, at.line, at.line + 1, false)[1]
  return { line = at.line + 1, character = position.to_client(line, at.character, tree.encoding) }
end

---@param tree mcp-tools.lsp.Tree
---@param items table[]
---@param depth integer
---@return table[]
local function nested(tree, items, depth)
  local list = {}
  for _, item in ipairs(items) do
    local range = item.range or item.location and item.location.range
    tree.total = tree.total + 1
    if range and tree.left > 0 then
      tree.left = tree.left - 1
      local symbol = {
        name = server_text.text(item.name),
        kind = vim.lsp.protocol.SymbolKind[item.kind] or 'Unknown',
        range = { start = position_of(tree, range.start), ['end'] = position_of(tree, range['end']) },
        detail = server_text.text_or_nil(item.detail),
      }
      tree.bytes = tree.bytes + #vim.json.encode(symbol) + 1
      tree.pause()
      local children = item.children and #item.children > 0 and depth > 1 and nested(tree, item.children, depth - 1)
      symbol.children = children or nil
      table.insert(list, symbol)
    end
  end
  return list
end

--- Returns the symbols of a file: a list if it is complete, otherwise `{ total, note, symbols }`.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { path: string?, bufnr: integer?, depth: integer, limit: integer }
---@return table?
---@return mcp-tools.Error? err
local function of_file(ctx, args)
  local target, err = lsp.target(ctx, args)
  if not target then
    return nil, err
  end
  local result, info
  local params = lsp.document(target.bufnr)
  result, err, info = lsp.request(ctx, target.bufnr, 'textDocument/documentSymbol', params)
  if err then
    return nil, err
  elseif not result then
    return nil, errors.new('not_found', ('No symbols found in %s'):format(target.shown))
  end
  local pause = time_slice.of(ctx)
  server_text.refresh(ctx)
  for depth = args.depth, 1, -1 do
    local tree = {
      bufnr = target.bufnr,
      encoding = info.client.offset_encoding,
      left = args.limit,
      total = 0,
      bytes = 0,
      pause = pause,
    }
    local list = nested(tree, result, depth)
    if tree.bytes <= MAX_BYTES then
      if tree.left > 0 and depth == args.depth then
        return list
      end
      local text = tree.left > 0 and ('only %d levels, for their size; depth or symbol_find give less'):format(depth)
        or 'cut at limit; depth gives less'
      return { total = tree.total, note = text, symbols = list }
    end
  end
  return { total = #result, note = 'too many to be listed; limit gives fewer', symbols = {} }
end

return {
  name = 'lsp_symbols',
  title = 'Symbols of a file',
  description = 'Symbols of a file as its language server nests them: [{name, kind, range: {start: {line,'
    .. ' character}, end},'
    .. ' detail, children}], from 1. symbol_overview says it in fewer words.',
  args = args_of.file({
    depth = { type = 'integer', description = 'Levels', default = 10, minimum = 1, maximum = 20 },
    limit = {
      type = 'integer',
      description = 'Maximum number of results',
      default = 1000,
      minimum = 1,
      maximum = 10000,
    },
  }),
  annotations = { read_only = true, idempotent = true },
  run = of_file,
}
