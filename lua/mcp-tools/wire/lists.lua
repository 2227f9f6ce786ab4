--- tools/list and the other lists: definitions as the JSON text that clients get, made once for each change.
---
--- Receives: a kind.
--- Sends: one sorted list, with the prefix of the options before the names of tools.
--- Does not know about: pages, clients, which revision the bridge has.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local listing = require('mcp-tools.registry.listing')

local M = {}

---@type table<mcp-tools.Kind, { revision: integer, prefix: string, text: string }>
local made = {}

--- Definitions of a kind as clients get them.
---@param kind mcp-tools.Kind
---@return string
function M.json(kind)
  local registry, prefix = core.get().registry, config.get().tool_prefix
  local last, revision = made[kind], registry.revisions[kind]
  if last and last.revision == revision and last.prefix == prefix then
    return last.text
  end
  made[kind] = { revision = revision, prefix = prefix, text = listing.json(registry, kind, prefix) }
  return made[kind].text
end

return M
