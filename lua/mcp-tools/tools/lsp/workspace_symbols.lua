--- Finds symbols of the project by a part of their name.

local access = require('mcp-tools.privacy.access')
local args_of = require('mcp-tools.editor.lsp.args')
local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local navigation = require('mcp-tools.editor.lsp.navigation')
local server_text = require('mcp-tools.editor.lsp.server_text')

--- Returns the servers of a file, or all, with a buffer of each.
---@param ctx mcp-tools.Ctx
---@param args { path: string?, bufnr: integer? }
---@return { client: vim.lsp.Client, bufnr: integer }[]?
---@return mcp-tools.Error? err
local function servers_of(ctx, args)
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
  local inside = server_text.text_or_nil(symbol.containerName)
  return ('%s %s%s'):format(
    vim.lsp.protocol.SymbolKind[symbol.kind] or 'Unknown',
    server_text.text(symbol.name),
    inside and ' in ' .. inside or ''
  )
end

--- Returns symbols of the project.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { query: string, kinds: string[]?, path: string?, bufnr: integer?, limit: integer, offset: integer }
---@return table?
---@return mcp-tools.Error? err
local function of_project(ctx, args)
  local given, err = symbol_tree.read_kinds(args.kinds or {})
  if not given then
    return nil, err
  end
  local list
  list, err = servers_of(ctx, args)
  if not list then
    return nil, err
  end
  local wanted = {}
  for _, kind in ipairs(given) do
    wanted[kind] = true
  end
  local found, unready, seen = {}, {}, {}
  server_text.refresh(ctx)
  for _, each in ipairs(list) do
    local answers, fault = lsp.begin(ctx, each.client, each.bufnr, 'workspace/symbol', { query = args.query })()
    err = err or fault
    table.insert(unready, { incomplete = answers and answers.incomplete })
    for _, symbol in ipairs(answers and answers.result or {}) do
      local uri, range = symbol.location.uri, symbol.location.range
      local at = range and range.start or { line = 0, character = 0 }
      local key = ('%s %d %s'):format(uri, at.line, symbol.name)
      if not seen[key] and (next(wanted) == nil or wanted[symbol_tree.kind_name(symbol.kind)]) then
        seen[key] = true
        table.insert(found, {
          path = uri:find('^file:') and access.shown(vim.uri_to_fname(uri), ctx.root) or access.name(uri),
          line = at.line + 1,
          column = at.character,
          text = label(symbol),
        })
      end
    end
  end
  if #found == 0 and err then
    return nil, err
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

return {
  name = 'lsp_workspace_symbols',
  title = 'Symbols of the project',
  description = 'Symbols of the project whose names match: {total, files: [{path, lines: ["line: kind name"]}]},'
    .. ' from 1.'
    .. ' Asks the servers of path, or all that run; servers match as they like.',
  args = args_of.paged(args_of.file({
    query = {
      type = 'string',
      description = 'Part of the name; empty: all, where the server lists them',
      required = true,
    },
    kinds = {
      type = 'array',
      items = { type = 'string' },
      description = 'Only these kinds, such as Class, Function, Method',
    },
  })),
  annotations = { read_only = true, idempotent = true },
  run = of_project,
}
