--- Call and type hierarchies of the symbol at a position.

local errors = require('mcp-tools.errors')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local navigation = require('mcp-tools.editor.lsp.navigation')
local request = require('mcp-tools.editor.lsp.request')
local server_text = require('mcp-tools.editor.lsp.server_text')

local M = {}

--- Maximum number of nodes in one hierarchy.
local MAX_NODES = 200

---@class mcp-tools.lsp.Hierarchy
---@field prepare string method
---@field step string method that returns the next level
---@field item string? field of an entry that holds the item; nil: the entry is the item
---@field ranges string? field of an entry that holds the ranges of calls

---@param item table CallHierarchyItem or TypeHierarchyItem
---@return string
local function key_of(item)
  return ('%s %d %s'):format(item.uri, item.selectionRange.start.line, item.name)
end

--- Explores breadth first, so that the limit never hides direct callers.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param items table[]
---@param kind mcp-tools.lsp.Hierarchy
---@param depth integer levels
---@return table[]? nodes of the first level
---@return mcp-tools.lsp.Item[]|mcp-tools.Error flat all nodes
local function explore(ctx, client, items, kind, depth)
  local tops, flat, seen, level = {}, {}, {}, {}
  for i, item in ipairs(items) do
    seen[key_of(item)] = true
    level[i] = { item = item, children = tops }
  end
  for at_depth = 1, depth do
    local below = {}
    for _, above in ipairs(level) do
      if #flat >= MAX_NODES then
        return tops, flat
      end
      local entries, err = request.ask(ctx, client, kind.step, { item = above.item })
      if err and at_depth == 1 then
        return nil, err
      end
      for i = 1, math.min(#(entries or {}), MAX_NODES - #flat) do
        local entry = entries[i]
        local each = kind.item and entry[kind.item] or entry
        local node = { item = each, calls = {}, children = {} }
        for _, range in ipairs(kind.ranges and entry[kind.ranges] or {}) do
          if not vim.list_contains(node.calls, range.start.line + 1) then
            table.insert(node.calls, range.start.line + 1)
          end
        end
        table.sort(node.calls)
        table.insert(flat, {
          uri = each.uri,
          range = each.selectionRange,
          encoding = client.offset_encoding,
          data = node,
        })
        table.insert(above.children, node)
        if not seen[key_of(each)] then
          seen[key_of(each)] = true
          table.insert(below, node)
        end
      end
    end
    level = below
  end
  return tops, flat
end

---@param node table
---@return table
local function answer_of(node)
  local found = node.found
  return {
    name = server_text.text(node.item.name),
    kind = vim.lsp.protocol.SymbolKind[node.item.kind],
    path = found.path,
    line = found.line,
    column = found.column,
    lines = #node.calls > 0 and node.calls or nil,
    children = #node.children > 0 and vim.tbl_map(answer_of, node.children) or nil,
  }
end

--- Returns the hierarchy of the symbol at a position.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args table
---@param kind mcp-tools.lsp.Hierarchy
---@return table? answer
---@return mcp-tools.Error? err
function M.of(ctx, args, kind)
  local spot, err = navigation.spot(ctx, args)
  if not spot then
    return nil, err
  end
  local items, info
  items, err, info = lsp.request(ctx, spot.bufnr, kind.prepare, lsp.place(spot.bufnr, spot.line, spot.column))
  if err then
    return nil, err
  elseif not items then
    local text = 'there is no hierarchy for %s; line and column must be on the name of a function or class'
    return nil, errors.new('not_found', text:format(navigation.name(spot)))
  end
  server_text.refresh(ctx)
  local tops, flat = explore(ctx, info.client, items, kind, args.depth)
  if not tops then
    return nil, flat --[[@as mcp-tools.Error]]
  end
  local found = locations.find(ctx, flat, { without_text = true })
  for _, each in ipairs(found) do
    each.data.found = each
  end
  return {
    of = server_text.text(items[1].name),
    total = #flat,
    items = vim.tbl_map(answer_of, tops),
    truncated = #flat >= MAX_NODES or nil,
    incomplete = info.incomplete and info.incomplete .. ', so this may be a part' or nil,
  }
end

return M
