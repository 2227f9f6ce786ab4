--- tools/list and the other lists: definitions as the JSON text that clients get, made once for each change.
---
--- Receives: a kind.
--- Sends: one sorted list, with the prefix of the options before the names of tools.
--- Does not know about: pages, clients, which revision the bridge has.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local listing = require('mcp-tools.registry.listing')

local M = {}

---@class mcp-tools.MadeList
---@field revision integer
---@field prefix string
---@field text string

---@type table<mcp-tools.Kind, mcp-tools.MadeList>
local made = {}
---@type table<mcp-tools.View, mcp-tools.MadeList> of tools; views that nobody has any more take theirs with them
local seen = setmetatable({}, { __mode = 'k' })

--- Definitions of a kind as clients get them.
---@param kind mcp-tools.Kind
---@param view? mcp-tools.View of a client that does not see all tools
---@return string
function M.json(kind, view)
  local registry, prefix = core.begin().registry, config.get().tool_prefix
  if view and view.companion then
    return listing.json(registry, kind, prefix, view) -- it has a few, and asks once
  end
  local kept, key = view and seen or made, view or kind
  local last, revision = kept[key], registry.revisions[kind]
  if last and last.revision == revision and last.prefix == prefix then
    return last.text
  end
  local text = listing.json(registry, kind, prefix, view)
  kept[key] = { revision = revision, prefix = prefix, text = text }
  return text
end

return M
