--- The JSON text of `tools/list` and similar lists, encoded once for each change.
---
--- A definition that cannot be encoded is left out, logged, and added to the registry's refused ones, which
--- `:checkhealth` shows.

local json = require('mcp-tools.util.json')
local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')
local tool_search = require('mcp-tools.scope.tool_search')

local M = {}

--- Encoded definitions, with the prefix that was used; those for Claude Code apart. A changed definition is a new
--- table.
---@alias mcp-tools.EncodedDefinitions table<table, { prefix: string, text: string }>
local plain, claude = setmetatable({}, { __mode = 'k' }), setmetatable({}, { __mode = 'k' })

---@param published fun(entry: table, prefix: string, is_claude: boolean?): table
---@param entry table
---@param prefix string
---@param is_claude boolean?
---@return string? text
---@return string? fault
local function encoded(published, entry, prefix, is_claude)
  local cache = is_claude and claude or plain ---@type mcp-tools.EncodedDefinitions
  local cached = cache[entry]
  if cached and cached.prefix == prefix then
    return cached.text
  end
  local ok, definition = xpcall(published, debug.traceback, entry, prefix, is_claude)
  if not ok then
    return nil, tostring(definition)
  end
  local texts = entry.schema_texts or {} -- schemas of a mounted server's tool, published unchanged
  for field in pairs(texts) do
    definition[field] = nil
  end
  local text, err = json.encode(definition, 'definition')
  for field, schema in vim.spairs(text and texts or {}) do
    text = ('%s,"%s":%s}'):format(text:sub(1, -2), field, schema)
  end
  cache[entry] = text and { prefix = prefix, text = text } or nil
  return text, err and err.message
end

--- Returns the size in bytes of a tool in `tools/list`.
---@param tool mcp-tools.Definition
---@param prefix string
---@return integer
function M.size(tool, prefix)
  local text = encoded(require(kinds.row('tools').definition).published, tool, prefix)
  return text and #text + 1 or 0
end

--- Encodes one definition early, so that a list of thousands does not block the main thread later.
---@param kind mcp-tools.Kind
---@param entry table
---@param prefix string
function M.prepare(kind, entry, prefix)
  encoded(require(kinds.row(kind).definition).published, entry, prefix)
end

---@param registry mcp-tools.Registry
---@param kind mcp-tools.Kind
---@param prefix string
---@param view mcp-tools.View?
---@param is_claude boolean?
---@return string json
local function encode_list(registry, kind, prefix, view, is_claude)
  local row = kinds.row(kind)
  local parts, published = {}, require(row.definition).published
  local entries
  if view and view.agent then
    entries, prefix = kind == 'tools' and view:agent_tools() or {}, '' -- the agent expects fixed names
  elseif view and view.catalogue == 'search' then
    entries = tool_search.list()
  else
    entries = registry:list(kind)
    entries = view and view:filter(entries) or entries
  end
  for _, entry in ipairs(entries) do
    local text, fault = encoded(published, entry, prefix, is_claude)
    parts[#parts + 1] = text
    if not text then
      local key = entry.key or entry.name
      registry:refuse(kind, key, 'not listed: ' .. fault)
      log.error("%s '%s' is left out of the list: %s", row.what, key, fault)
    end
  end
  return '[' .. table.concat(parts, ',') .. ']'
end

---@class mcp-tools.EncodedList
---@field revision integer
---@field prefix string
---@field text string

--- Cached lists by registry, then by view or kind. Entries of unused views are garbage-collected.
---@type table<mcp-tools.Registry, table<mcp-tools.View|mcp-tools.Kind, mcp-tools.EncodedList>>
local lists, lists_of_claude = setmetatable({}, { __mode = 'k' }), setmetatable({}, { __mode = 'k' })

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
  local all = is_claude and lists_of_claude or lists
  all[registry] = all[registry] or setmetatable({}, { __mode = 'k' })
  local cached, key, revision = all[registry], view or kind, registry.revisions[kind]
  local last = cached[key]
  if not last or last.revision ~= revision or last.prefix ~= prefix then
    last = { revision = revision, prefix = prefix, text = encode_list(registry, kind, prefix, view, is_claude) }
    cached[key] = last
  end
  return last.text
end

return M
