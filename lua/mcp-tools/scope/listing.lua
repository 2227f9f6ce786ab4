--- The JSON text of `tools/list` and similar lists, encoded once for each change.

local json = require('mcp-tools.util.json')
local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')
local tool_search = require('mcp-tools.scope.tool_search')

local M = {}

--- A cache by objects that may be garbage-collected.
---@return table
local function weak()
  return setmetatable({}, { __mode = 'k' })
end

--- Encoded definitions, with the prefix that was used; those for Claude Code apart. A changed definition is a new
--- table.
---@type table<boolean, table<table, { prefix: string, text: string }>>
local caches = { [true] = weak(), [false] = weak() }

--- Encodes one definition. Called early for each of thousands, so that the list does not block the main thread later.
---@param kind mcp-tools.Kind
---@param entry table
---@param prefix string
---@param is_claude boolean?
---@return string? text nil (logged) if it cannot be encoded
function M.encoded(kind, entry, prefix, is_claude)
  local cache = caches[is_claude == true]
  local cached = cache[entry]
  if cached and cached.prefix == prefix then
    return cached.text
  end
  local published = require(kinds.row(kind).definition).published
  local definition = published(entry, prefix, is_claude)
  local texts = entry.schema_texts or {} -- schemas of a mounted server's tool, published unchanged
  for field in pairs(texts) do
    definition[field] = nil
  end
  local text, err = json.encode(definition, 'definition')
  for field, schema in vim.spairs(text and texts or {}) do
    text = ('%s,"%s":%s}'):format(text:sub(1, -2), field, schema)
  end
  cache[entry] = text and { prefix = prefix, text = text } or nil
  if err then
    log.error("%s '%s' is left out of the list: %s", kinds.row(kind).what, entry.key or entry.name, err.message)
  end
  return text
end

--- Returns the size in bytes of a tool in `tools/list`.
---@param tool mcp-tools.Definition
---@param prefix string
---@return integer
function M.size(tool, prefix)
  local text = M.encoded('tools', tool, prefix)
  return text and #text + 1 or 0
end

---@param registry mcp-tools.Registry
---@param kind mcp-tools.Kind
---@param prefix string
---@param view mcp-tools.View?
---@param is_claude boolean?
---@return string json
local function encode_list(registry, kind, prefix, view, is_claude)
  local parts, entries = {}, registry:list(kind)
  if view and view.agent then
    entries, prefix = kind == 'tools' and view:agent_tools() or {}, '' -- the agent expects fixed names
  elseif view and view.catalogue == 'search' then
    entries = tool_search.list()
  elseif view then
    entries = view:filter(entries)
  end
  for _, entry in ipairs(entries) do
    parts[#parts + 1] = M.encoded(kind, entry, prefix, is_claude)
  end
  return '[' .. table.concat(parts, ',') .. ']'
end

---@class mcp-tools.EncodedList
---@field revision integer
---@field prefix string
---@field text string

--- Cached lists, those for Claude Code apart, by registry, then by view or kind. Entries of unused views are
--- garbage-collected.
---@type table<boolean, table<mcp-tools.Registry, table<table|string, mcp-tools.EncodedList>>>
local lists = { [true] = weak(), [false] = weak() }

--- Returns the list of a kind for clients.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.Kind
---@param prefix string before the names of tools
---@param view mcp-tools.View? of the client, for tools
---@param client string? its name
---@return string json
function M.json(registry, kind, prefix, view, client)
  if view and view.agent then
    return encode_list(registry, kind, prefix, view) -- has few tools and is read once
  end
  local is_claude = kind == 'tools' and client ~= nil and client:find('^claude%-code') ~= nil
  local all = lists[is_claude]
  all[registry] = all[registry] or weak()
  local cached, key, revision = all[registry], view or kind, registry.revisions[kind]
  local last = cached[key]
  if not last or last.revision ~= revision or last.prefix ~= prefix then
    last = { revision = revision, prefix = prefix, text = encode_list(registry, kind, prefix, view, is_claude) }
    cached[key] = last
  end
  return last.text
end

return M
