--- The JSON text of `tools/list` and similar lists. Each definition is encoded once.

local json = require('mcp-tools.util.json')
local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')
local tool_search = require('mcp-tools.scope.tool_search')

local M = {}

--- Encoded definitions, with the prefix that was used; those for Claude Code apart. A changed definition is a new
--- table.
---@type table<boolean, table<table, { prefix: string, text: string }>>
local caches = { [true] = setmetatable({}, { __mode = 'k' }), [false] = setmetatable({}, { __mode = 'k' }) }

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

--- Returns the list of a kind for clients.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.Kind
---@param prefix string before the names of tools
---@param view mcp-tools.View? of the client, for tools
---@param client string? its name
---@return string json
function M.json(registry, kind, prefix, view, client)
  local is_claude = kind == 'tools' and client ~= nil and client:find('^claude%-code') ~= nil
  local parts, entries = {}, registry:list(kind)
  if view and view.agent then
    entries = kind == 'tools' and view:agent_tools() or {}
    prefix, is_claude = '', false -- the agent expects fixed names
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

return M
