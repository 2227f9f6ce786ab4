--- The lists of clients (`tools/list` and its like) as JSON text, made once for each change.
---
--- An entry that cannot be written is left out and logged; it is among the refused of the registry, which health shows.

local catalogue = require('mcp-tools.scope.tool_search')
local companions = require('mcp-tools.scope.agent_tools')
local json = require('mcp-tools.util.json')
local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')

local M = {}

--- Texts of entries, by the prefix that they have it with. An entry that has changed is another one.
---@type table<table, { prefix: string, text: string }>
local made_before = setmetatable({}, { __mode = 'k' })

---@param published fun(entry: table, prefix: string): table
---@param entry table
---@param prefix string
---@return string? text
---@return string? why there is none
local function text_of(published, entry, prefix)
  local before = made_before[entry]
  if before and before.prefix == prefix then
    return before.text
  end
  local made, definition = xpcall(published, debug.traceback, entry, prefix)
  if not made then
    return nil, tostring(definition)
  end
  local texts = entry.schema_texts or {} -- of a mounted server's tool: written as they came
  for field in pairs(texts) do
    definition[field] = nil
  end
  local text, err = json.encode(definition, 'definition')
  for field, written in vim.spairs(text and texts or {}) do
    text = ('%s,"%s":%s}'):format(text:sub(1, -2), field, written)
  end
  made_before[entry] = text and { prefix = prefix, text = text } or nil
  return text, err and err.message
end

--- The bytes that a tool takes in the lists of clients.
---@param tool mcp-tools.Definition
---@param prefix string
---@return integer
function M.size(tool, prefix)
  local text = text_of(require(kinds.row('tools').definition).published, tool, prefix)
  return text and #text + 1 or 0
end

--- Makes the text of an entry ahead of the list, of which there may be thousands.
---@param kind mcp-tools.Kind
---@param entry table
---@param prefix string
function M.prepare(kind, entry, prefix)
  text_of(require(kinds.row(kind).definition).published, entry, prefix)
end

---@param registry mcp-tools.Registry
---@param kind mcp-tools.Kind
---@param prefix string
---@param view mcp-tools.View?
---@return string json
local function written(registry, kind, prefix, view)
  local row = kinds.row(kind)
  local parts, published = {}, require(row.definition).published
  local entries
  if view and view.companion then
    entries, prefix = kind == 'tools' and companions.tools(view.companion) or {}, '' -- its agent knows their names
  elseif view and view.catalogue == 'search' then
    entries = catalogue.list()
  else
    entries = registry:list(kind)
    entries = view and view:filter(entries) or entries
  end
  for _, entry in ipairs(entries) do
    local text, why = text_of(published, entry, prefix)
    parts[#parts + 1] = text
    if not text then
      local key = entry.key or entry.name
      registry:refuse(kind, key, 'not listed: ' .. why)
      log.error("%s '%s' is left out of the list: %s", row.what, key, why)
    end
  end
  return '[' .. table.concat(parts, ',') .. ']'
end

---@class mcp-tools.MadeList
---@field revision integer
---@field prefix string
---@field text string

--- By registry, then by view or kind; views that nobody has any more are collected.
---@type table<mcp-tools.Registry, table<mcp-tools.View|mcp-tools.Kind, mcp-tools.MadeList>>
local lists = setmetatable({}, { __mode = 'k' })

--- What clients get of all that is on of a kind.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.Kind
---@param prefix string before the names of tools
---@param view mcp-tools.View? of a client, for tools
---@return string json
function M.json(registry, kind, prefix, view)
  if view and view.companion then
    return written(registry, kind, prefix, view) -- it has a few, and asks once
  end
  lists[registry] = lists[registry] or setmetatable({}, { __mode = 'k' })
  local made, key, revision = lists[registry], view or kind, registry.revisions[kind]
  local last = made[key]
  if not last or last.revision ~= revision or last.prefix ~= prefix then
    last = { revision = revision, prefix = prefix, text = written(registry, kind, prefix, view) }
    made[key] = last
  end
  return last.text
end

return M
