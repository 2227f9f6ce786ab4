--- tools/list and the other lists: definitions as the JSON text that clients get, made once for each change.
---
--- Receives: a kind.
--- Sends: one sorted list, with the prefix of the options before the names of tools.
--- Does not know about: pages, clients, which revision the bridge has.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local json = require('mcp-tools.util.json')
local prompt = require('mcp-tools.registry.definition.prompt')
local resource = require('mcp-tools.registry.definition.resource')
local tool = require('mcp-tools.registry.definition.tool')

local M = {}

---@type table<mcp-tools.Kind, fun(def: table, prefix: string): table>
local PUBLISHED = {
  tools = tool.published,
  resources = resource.published,
  templates = resource.published,
  prompts = prompt.published,
}

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
  local parts = {}
  for i, entry in ipairs(registry:list(kind)) do
    parts[i] = assert(json.encode(PUBLISHED[kind](entry, prefix), entry.name))
  end
  made[kind] = { revision = revision, prefix = prefix, text = '[' .. table.concat(parts, ',') .. ']' }
  return made[kind].text
end

return M
