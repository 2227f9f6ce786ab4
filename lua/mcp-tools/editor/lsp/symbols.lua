--- Symbols as language servers tell them: of a file, nested; of the project, by a part of the name.
---
--- Receives: the arguments of a tool.
--- Sends: the answer of the tool, or an error value.
--- Does not know about: other ways to find symbols, what the tool is called.

local access = require('mcp-tools.files.access')
local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local kinds = require('mcp-tools.editor.lsp.kinds')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local navigation = require('mcp-tools.editor.lsp.navigation')
local position = require('mcp-tools.editor.lsp.position')
local server_text = require('mcp-tools.editor.lsp.server_text')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- An answer that is larger comes with fewer levels. Bytes.
local MAX_BYTES = 48000

---@param kind integer
---@return string
local function kind_name(kind)
  return vim.lsp.protocol.SymbolKind[kind] or 'Unknown'
end

---@class mcp-tools.lsp.Tree
---@field bufnr integer
---@field encoding mcp-tools.lsp.Encoding
---@field left integer symbols that may still be told
---@field total integer
---@field bytes integer of those that are told
---@field pause fun() called between pieces of work

---@param tree mcp-tools.lsp.Tree
---@param at lsp.Position
local function point(tree, at)
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
        kind = kind_name(item.kind),
        range = { start = point(tree, range.start), ['end'] = point(tree, range['end']) },
        detail = server_text.some(item.detail),
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

--- Symbols of a file: a list as long as it is whole, else `{ total, note, symbols }`.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args { path: string?, bufnr: integer?, depth: integer, limit: integer }
---@return table?
---@return mcp-tools.Error? err
function M.of_file(ctx, args)
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

--- Servers of a file, or all that run, with a buffer of each.
---@param ctx mcp-tools.Ctx
---@param args { path: string?, bufnr: integer? }
---@return { client: vim.lsp.Client, bufnr: integer }[]?
---@return mcp-tools.Error? err
local function asked(ctx, args)
  local method, list = 'workspace/symbol', {}
  if args.path or args.bufnr then
    local target, err = lsp.target(ctx, args)
    if not target then
      return nil, err
    end
    local found
    found, err = lsp.clients(ctx, target.bufnr, method)
    for _, client in ipairs(found or {}) do
      table.insert(list, { client = client, bufnr = target.bufnr })
    end
    return found and list, err
  end
  for _, client in ipairs(clients.of(nil, method)) do
    local bufnr = next(client.attached_buffers)
    if bufnr then
      table.insert(list, { client = client, bufnr = bufnr })
    end
  end
  if #list == 0 then
    return nil, errors.new('not_found', 'no language server that can be asked runs; give path, a file of the project')
  end
  return list
end

---@param symbol table
---@return string
local function label(symbol)
  local inside = server_text.some(symbol.containerName)
  return ('%s %s%s'):format(kind_name(symbol.kind), server_text.text(symbol.name), inside and ' in ' .. inside or '')
end

--- Symbols of the project.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args { query: string, kinds: string[]?, path: string?, bufnr: integer?, limit: integer, offset: integer }
---@return table?
---@return mcp-tools.Error? err
function M.of_project(ctx, args)
  local given, err = kinds.read(args.kinds or {})
  if not given then
    return nil, err
  end
  local list
  list, err = asked(ctx, args)
  if not list then
    return nil, err
  end
  local wanted = {}
  for _, kind in ipairs(given) do
    wanted[kind] = true
  end
  local items, unready, seen = {}, {}, {}
  server_text.refresh(ctx)
  for _, each in ipairs(list) do
    local answers, fault = lsp.ask_one(ctx, each.client, each.bufnr, 'workspace/symbol', { query = args.query })
    err = err or fault
    table.insert(unready, { incomplete = answers and answers.incomplete })
    for _, symbol in ipairs(answers and answers.result or {}) do
      local range = symbol.location.range
        or { start = { line = 0, character = 0 }, ['end'] = { line = 0, character = 0 } }
      local key = ('%s %d %s'):format(symbol.location.uri, range.start.line, symbol.name)
      if not seen[key] and (next(wanted) == nil or wanted[kinds.name(symbol.kind)]) then
        seen[key] = true
        table.insert(items, {
          uri = symbol.location.uri,
          range = range,
          encoding = each.client.offset_encoding,
          data = label(symbol),
        })
      end
    end
  end
  if #items == 0 and err then
    return nil, err
  end
  local found = {}
  for i, item in ipairs(items) do
    local path = item.uri:find('^file:') and access.shown(vim.uri_to_fname(item.uri), ctx.root) or access.name(item.uri)
    local line = item.range.start.line + 1
    found[i] = { path = path, line = line, column = item.range.start.character, text = item.data }
  end
  table.sort(found, function(a, b)
    if a.path ~= b.path then
      return a.path < b.path
    end
    return a.line < b.line or a.line == b.line and a.column < b.column
  end)
  local answer = locations.answer(found, {
    limit = args.limit,
    offset = args.offset,
    narrow = 'a longer query, kinds, or limit and offset give fewer',
  })
  answer.incomplete = navigation.incomplete(unready)
  return answer
end

return M
