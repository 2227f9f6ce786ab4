--- Navigation: definitions, references, and the hierarchies of calls and types.

local access = require('mcp-tools.privacy.access')
local args_of = require('mcp-tools.editor.lsp.args')
local errors = require('mcp-tools.errors')
local glob_of = require('mcp-tools.files.glob')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local request = require('mcp-tools.editor.lsp.request')
local server_state = require('mcp-tools.editor.lsp.server_state')
local server_text = require('mcp-tools.editor.lsp.server_text')
local watched_files = require('mcp-tools.editor.lsp.watched_files')

local M = {}

--- How long a server is asked again while its answer lacks files of which it was just notified, ns.
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

---@param each mcp-tools.lsp.Found
local function place_of(each)
  return { path = each.path, line = each.line, column = each.column, text = each.text }
end

--- Arguments of the tools that `locator` is for.
M.LOCATE_ARGS = args_of.place({
  limit = { type = 'integer', description = 'Maximum number of places', default = 50, minimum = 1, maximum = 1000 },
})

--- Returns the places of a definition, declaration or the like.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@param method string
---@param what string for the message if there is none
---@return table? answer { total, places, withheld?, incomplete? }
---@return mcp-tools.Error? err
local function locate(ctx, args, method, what)
  local spot, err = args_of.spot(ctx, args)
  if not spot then
    return nil, err
  end
  local answers
  answers, err =
    lsp.request_all(ctx, spot.bufnr, method, lsp.place(spot.bufnr, spot.line, spot.column), { every = true })
  if not answers then
    return nil, err
  end
  local items = locations.items(answers)
  if #items == 0 then
    local text = 'there is no %s for %s; line and column must be on a name'
    return nil, errors.new('not_found', text:format(what, args_of.spot_text(spot)))
  end
  local found, withheld = locations.find(ctx, vim.list_slice(items, 1, args.limit))
  return {
    total = #items,
    places = vim.tbl_map(place_of, found),
    withheld = withheld,
    incomplete = M.incomplete(answers),
  }
end

--- Returns the handler of a tool that finds the places of a definition, declaration or the like.
---@param method string
---@param what string
---@return fun(ctx: mcp-tools.Ctx, args: table): table?, mcp-tools.Error?
function M.locator(method, what)
  return function(ctx, args)
    return locate(ctx, args, method, what)
  end
end

---@param items mcp-tools.lsp.Item[]
---@param glob string?
---@param root string
---@return mcp-tools.lsp.Item[]
local function only(items, glob, root)
  if not glob then
    return items
  end
  local matches = glob_of.compile(glob)
  return vim.tbl_filter(function(item)
    local path = vim.uri_to_fname(item.uri)
    return matches(path:sub(#root + 2)) or matches(path)
  end, items)
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
function M.usages(ctx, spot, include_declaration)
  local at = lsp.place(spot.bufnr, spot.line, spot.column, { context = { includeDeclaration = include_declaration } })
  local begun, tries = vim.uv.hrtime(), 0
  while true do
    tries = tries + 1
    local asked, names = {}, {}
    local answers, err = lsp.request_all(ctx, spot.bufnr, 'textDocument/references', function(client)
      if not vim.list_contains(asked, client) then -- it may be asked twice
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
    local outdated, over = watched_files.outdated(ctx, args_of.word(spot), uris, begun, asked)
    if not outdated or tries > 1 and vim.uv.hrtime() > math.min(over, begun + RETRY_NS) then
      local about = outdated and ('%s may not have read %s yet'):format(by, access.shown(outdated, ctx.root))
      return items, nil, { by = by, incomplete = incomplete or about }
    end
    server_state.pause(ctx, 200)
  end
end

--- Returns the answer of `lsp_references`.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table? answer
---@return mcp-tools.Error? err
function M.references(ctx, args)
  local spot, err = args_of.spot(ctx, args)
  local items, info
  if spot then
    items, err, info = M.usages(ctx, spot, args.include_declaration)
  end
  if not spot or not items then
    return nil, err
  end
  items = only(items, args.files, ctx.root)
  local found, withheld = locations.find(ctx, items)
  local answer = locations.answer(found, {
    limit = args.limit,
    offset = args.offset,
    narrow = 'files (a glob) or limit and offset give fewer',
  })
  if #items == 0 then
    answer.note = ('there are no references to %s; line and column must be on a name'):format(args_of.spot_text(spot))
  end
  answer.withheld, answer.incomplete = withheld, M.incomplete({ info })
  return answer
end

--- Maximum number of nodes in one hierarchy.
local MAX_NODES = 200

---@class mcp-tools.lsp.Hierarchy
---@field prepare string method
---@field step string method that returns the next level
---@field item string? field of an entry that holds the item, beside the ranges of calls; nil: the entry is the item

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
        for _, range in ipairs(kind.item and entry.fromRanges or {}) do
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
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@param kind mcp-tools.lsp.Hierarchy
---@return table? answer
---@return mcp-tools.Error? err
function M.hierarchy(ctx, args, kind)
  local spot, err = args_of.spot(ctx, args)
  if not spot then
    return nil, err
  end
  local items, info
  items, err, info = lsp.request(ctx, spot.bufnr, kind.prepare, lsp.place(spot.bufnr, spot.line, spot.column))
  if err then
    return nil, err
  elseif not items then
    local text = 'there is no hierarchy for %s; line and column must be on the name of a function or class'
    return nil, errors.new('not_found', text:format(args_of.spot_text(spot)))
  end
  server_text.refresh(ctx)
  local tops, flat = explore(ctx, info.client, items, kind, args.depth)
  if not tops then
    return nil, flat --[[@as mcp-tools.Error]]
  end
  local incomplete = info.incomplete or lsp.reading(info.client)
  local found = locations.find(ctx, flat --[[@as mcp-tools.lsp.Item[] ]], { without_text = true })
  for _, each in ipairs(found) do
    each.data.found = each
  end
  return {
    of = server_text.text(items[1].name),
    total = #flat,
    items = vim.tbl_map(answer_of, tops),
    truncated = #flat >= MAX_NODES or nil,
    incomplete = M.incomplete({ { incomplete = incomplete } }),
  }
end

return M
