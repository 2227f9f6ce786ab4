--- Navigation: definitions, references, hierarchies; questions about a place whose answer is other places.
---
--- Receives: the arguments of a tool, a method of the protocol.
--- Sends: the answer of the tool, or an error value.
--- Does not know about: what the tool is called.

local args_of = require('mcp-tools.editor.lsp.args')
local errors = require('mcp-tools.errors')
local glob_of = require('mcp-tools.files.glob')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local named = require('mcp-tools.editor.lsp.named')
local position = require('mcp-tools.editor.lsp.position')
local request = require('mcp-tools.editor.lsp.request')
local server_text = require('mcp-tools.editor.lsp.server_text')
local strings = require('mcp-tools.util.strings')
local wait = require('mcp-tools.editor.lsp.wait')
local watched_files = require('mcp-tools.editor.lsp.watched_files')

local M = {}

--- A server that has just been told of new files is asked again for so long, ns.
local DOUBT = 3e9
--- Maximum number of nodes in one hierarchy.
local MAX_NODES = 200

---@class mcp-tools.lsp.Spot
---@field bufnr integer
---@field path string
---@field line integer
---@field column integer
---@field text string

--- The file and the place in it that arguments name.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args table
---@return mcp-tools.lsp.Spot? spot
---@return mcp-tools.Error? err
function M.spot(ctx, args)
  local target, err = lsp.target(ctx, args)
  if not target then
    return nil, err
  end
  local place
  if args.symbol and not args.line then
    place, err = named.place(ctx, target.bufnr, target.shown, args.symbol, { ready_ms = args.wait_ms })
  else
    place, err = args_of.where(target.bufnr, args)
  end
  if not place then
    return nil, err
  end
  return vim.tbl_extend('error', { bufnr = target.bufnr, path = target.shown }, place)
end

--- How a place is called in messages.
---@param spot mcp-tools.lsp.Spot
---@return string
function M.name(spot)
  return ('%s:%d:%d'):format(spot.path, spot.line, spot.column)
end

---@param answers { incomplete: string? }[]
---@return string? why the first that is not whole is a part
local function reason_of(answers)
  for _, answer in ipairs(answers) do
    if answer.incomplete then
      return answer.incomplete
    end
  end
end

--- Says that answers may be a part.
---@param answers { incomplete: string? }[]
---@return string?
function M.incomplete(answers)
  local reason = reason_of(answers)
  return reason and reason .. ', so this may be a part'
end

---@param each mcp-tools.lsp.Found
local function place_of(each)
  return { path = each.path, line = each.line, column = each.column, text = each.text }
end

--- The few places that something is at.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args table
---@param method string
---@param what string for the message when there is none
---@return table? answer { total, places, withheld?, incomplete? }
---@return mcp-tools.Error? err
function M.few(ctx, args, method, what)
  local spot, err = M.spot(ctx, args)
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
    return nil, errors.new('not_found', text:format(what, M.name(spot)))
  end
  local found, withheld = locations.find(ctx, vim.list_slice(items, 1, args.limit))
  return {
    total = #items,
    places = vim.tbl_map(place_of, found),
    withheld = withheld,
    incomplete = M.incomplete(answers),
  }
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

--- The name that a place is on.
---@param spot mcp-tools.lsp.Spot
---@return string '' when it is on none
function M.word(spot)
  local byte = position.byte(spot.text, spot.column - 1, 'utf-32') + 1
  local first = #strings.last_word(spot.text:sub(1, byte - 1))
  return spot.text:sub(byte - first):match('^[%w_\128-\255]*')
end

--- Finds where the name at a place is used.
---@param ctx mcp-tools.Ctx in a coroutine
---@param spot mcp-tools.lsp.Spot
---@param include_declaration boolean
---@return mcp-tools.lsp.Item[]? items
---@return mcp-tools.Error? err
---@return { by: string, incomplete: string? }? info `by`: the servers
function M.usages(ctx, spot, include_declaration)
  local at = lsp.place(spot.bufnr, spot.line, spot.column, { context = { includeDeclaration = include_declaration } })
  local over = vim.uv.hrtime() + DOUBT
  while true do
    local names = {}
    local answers, err = lsp.request_all(ctx, spot.bufnr, 'textDocument/references', function(client)
      table.insert(names, client.name)
      return at(client)
    end, { every = true })
    if not answers then
      return nil, err
    end
    local items = locations.items(answers)
    local doubt = vim.uv.hrtime() < over and watched_files.lacks(ctx, M.word(spot), uris_of(items))
    if not doubt then
      return items, nil, { by = table.concat(names, ', '), incomplete = reason_of(answers) }
    end
    wait.pause(ctx, 200)
  end
end

--- Where the name at a place is used.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args table
---@return table? answer
---@return mcp-tools.Error? err
function M.references(ctx, args)
  local spot, err = M.spot(ctx, args)
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
    answer.note = ('nothing uses what stands at %s; line and column must be on a name'):format(M.name(spot))
  end
  answer.withheld, answer.incomplete = withheld, M.incomplete({ info })
  return answer
end

-- Hierarchies --------------------------------------------------------------------------------------------------

---@class mcp-tools.lsp.Hierarchy
---@field prepare string method
---@field step string method that gives what comes next
---@field item string? field of an entry that has the item; nil: it is the item
---@field ranges string? field of an entry that has the places of calls

---@param item table CallHierarchyItem or TypeHierarchyItem
---@return string
local function key_of(item)
  return ('%s %d %s'):format(item.uri, item.selectionRange.start.line, item.name)
end

--- Asks level by level, so that the direct callers come before those of any of them.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param items table[]
---@param kind mcp-tools.lsp.Hierarchy
---@param depth integer levels
---@return table[]? nodes of the first level
---@return mcp-tools.lsp.Item[]|mcp-tools.Error flat all of them
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
local function shown(node)
  local found = node.found
  return {
    name = server_text.text(node.item.name),
    kind = vim.lsp.protocol.SymbolKind[node.item.kind],
    path = found.path,
    line = found.line,
    column = found.column,
    lines = #node.calls > 0 and node.calls or nil,
    children = #node.children > 0 and vim.tbl_map(shown, node.children) or nil,
  }
end

--- What calls, is called by, is above or below what stands at a place.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args table
---@param kind mcp-tools.lsp.Hierarchy
---@return table? answer
---@return mcp-tools.Error? err
function M.hierarchy(ctx, args, kind)
  local spot, err = M.spot(ctx, args)
  if not spot then
    return nil, err
  end
  local items, info
  items, err, info = lsp.request(ctx, spot.bufnr, kind.prepare, lsp.place(spot.bufnr, spot.line, spot.column))
  if err then
    return nil, err
  elseif not items then
    local text = 'nothing at %s can be looked up; line and column must be on the name of a function or class'
    return nil, errors.new('not_found', text:format(M.name(spot)))
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
    items = vim.tbl_map(shown, tops),
    truncated = #flat >= MAX_NODES or nil,
    incomplete = info.incomplete and info.incomplete .. ', so this may be a part' or nil,
  }
end

return M
