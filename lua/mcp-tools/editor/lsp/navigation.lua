--- Definitions, references and similar places, and the hierarchies of calls and types.

local access = require('mcp-tools.privacy.access')
local args_of = require('mcp-tools.editor.lsp.args')
local errors = require('mcp-tools.errors')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local position = require('mcp-tools.editor.position')
local request = require('mcp-tools.editor.lsp.request')
local server_state = require('mcp-tools.editor.lsp.server_state')
local server_text = require('mcp-tools.editor.lsp.server_text')
local watched_files = require('mcp-tools.editor.lsp.watched_files')

local M = {}

--- How long a request is repeated while the answer lacks a file of which the server was just notified, ns.
local RETRY_NS = 3e9

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

--- Returns the places that a request about a position returns, such as definitions or implementations.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param spot mcp-tools.lsp.Spot
---@param method string
---@param limit integer maximum number of places
---@return { total: integer, items: mcp-tools.lsp.Item[], places: mcp-tools.lsp.Found[], withheld: table[]?,
---  incomplete: string? }?
---@return mcp-tools.Error? err
function M.places(ctx, spot, method, limit)
  local at = lsp.position_params(spot.bufnr, spot.line, spot.column)
  local answers, err = lsp.request_all(ctx, spot.bufnr, method, at, { every = true })
  if not answers then
    return nil, err
  end
  local items = locations.items(answers)
  local found, withheld = locations.find(ctx, vim.list_slice(items, 1, limit))
  return { total = #items, items = items, places = found, withheld = withheld, incomplete = M.incomplete(answers) }
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

--- Returns the references to the symbol at a place.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param spot mcp-tools.lsp.Spot
---@param include_declaration boolean
---@return mcp-tools.lsp.Item[]? items
---@return mcp-tools.Error? err
---@return { by: string, incomplete: string? }? info `by`: the servers
function M.references(ctx, spot, include_declaration)
  local at =
    lsp.position_params(spot.bufnr, spot.line, spot.column, { context = { includeDeclaration = include_declaration } })
  local begun, tries = vim.uv.hrtime(), 0
  while true do
    tries = tries + 1
    local asked, names = {}, {}
    local answers, err = lsp.request_all(ctx, spot.bufnr, 'textDocument/references', function(client)
      if not vim.list_contains(asked, client) then -- `request_all` may ask it twice
        table.insert(asked, client)
        table.insert(names, client.name)
      end
      return at(client)
    end, { every = true })
    if not answers then
      return nil, err
    end
    local items = locations.items(answers)
    local by, incomplete = table.concat(names, ', '), reason_of(answers)
    local uris = uris_of(items)
    uris[vim.uri_from_bufnr(spot.bufnr)] = true -- its text comes from the editor
    local outdated, read_by = watched_files.outdated(ctx, args_of.word(spot), uris, begun, asked)
    if not outdated or tries > 1 and vim.uv.hrtime() > math.min(read_by, begun + RETRY_NS) then
      local about = outdated and ('%s may not have read %s yet'):format(by, access.shown(outdated, ctx.root))
      return items, nil, { by = by, incomplete = incomplete or about }
    end
    server_state.pause(ctx, 200)
  end
end

--- Maximum number of nodes in one hierarchy.
local MAX_NODES = 200

---@class mcp-tools.lsp.Hierarchy
---@field prepare string method
---@field step string method that returns the next level
---@field item string? field of an entry that has the item (calls); nil: the entry is the item (types)

---@param item any
---@return boolean
local function is_item(item)
  return type(item) == 'table'
    and type(item.uri) == 'string'
    and type(item.name) == 'string'
    and position.is_range(item.selectionRange)
end

---@param item table CallHierarchyItem or TypeHierarchyItem
---@return string
local function key_of(item)
  return ('%s %d %s'):format(item.uri, item.selectionRange.start.line, item.name)
end

--- Explores breadth first, so that the limit never hides direct callers.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param items table[]
---@param hierarchy mcp-tools.lsp.Hierarchy
---@param depth integer levels
---@return table[]? nodes of the first level
---@return mcp-tools.lsp.Item[]|mcp-tools.Error flat all nodes
local function explore(ctx, client, items, hierarchy, depth)
  local tops, flat, seen, level = {}, {}, {}, {}
  for i, item in ipairs(items) do
    seen[key_of(item)] = true
    level[i] = { item = item, children = tops }
  end
  for at_depth = 1, depth do
    local next_level = {}
    for _, parent in ipairs(level) do
      if #flat >= MAX_NODES then
        return tops, flat
      end
      local entries, err = request.ask(ctx, client, hierarchy.step, { item = parent.item })
      if err and at_depth == 1 then
        return nil, err
      end
      entries = vim.tbl_filter(function(entry)
        return is_item(type(entry) == 'table' and hierarchy.item and entry[hierarchy.item] or entry)
      end, entries or {})
      for i = 1, math.min(#entries, MAX_NODES - #flat) do
        local entry = entries[i]
        local each = hierarchy.item and entry[hierarchy.item] or entry
        local node = { item = each, calls = {}, children = {} }
        for _, range in ipairs(hierarchy.item and entry.fromRanges or {}) do
          if position.is_range(range) and not vim.list_contains(node.calls, range.start.line + 1) then
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
        table.insert(parent.children, node)
        if not seen[key_of(each)] then
          seen[key_of(each)] = true
          table.insert(next_level, node)
        end
      end
    end
    level = next_level
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
---@param ctx mcp-tools.Ctx inside a coroutine
---@param spot mcp-tools.lsp.Spot
---@param hierarchy mcp-tools.lsp.Hierarchy
---@param depth integer
---@return { of: string, total: integer, items: table[], truncated: boolean?, incomplete: string? }?
---@return mcp-tools.Error? err
function M.hierarchy(ctx, spot, hierarchy, depth)
  local items, err, info =
    lsp.request(ctx, spot.bufnr, hierarchy.prepare, lsp.position_params(spot.bufnr, spot.line, spot.column))
  if err then
    return nil, err
  elseif not items then
    local text = 'there is no hierarchy at %s; the position must be on the name of a function or class'
    return nil, errors.new('not_found', text:format(args_of.spot_text(spot)))
  end
  items = vim.tbl_filter(is_item, items)
  server_text.refresh(ctx)
  local tops, flat = explore(ctx, info.client, items, hierarchy, depth)
  if not tops then
    return nil, flat --[[@as mcp-tools.Error]]
  end
  local incomplete = info.incomplete or lsp.why_indexing(info.client)
  local found = locations.find(ctx, flat --[[@as mcp-tools.lsp.Item[] ]], { without_text = true })
  for _, each in ipairs(found) do
    each.data.found = each
  end
  return {
    of = items[1] and server_text.text(items[1].name) or '',
    total = #flat,
    items = vim.tbl_map(answer_of, tops),
    truncated = #flat >= MAX_NODES or nil,
    incomplete = M.incomplete({ { incomplete = incomplete } }),
  }
end

return M
