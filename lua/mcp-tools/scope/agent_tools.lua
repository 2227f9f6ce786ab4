--- Tools of companions: what an agent's own channel into this editor offers, apart from all other tools.

local M = {}

---@type table<string, table<string, mcp-tools.Definition>>
local tools = {}

--- From now on these are all that a companion offers; nil = there is no such companion.
---@param companion string
---@param definitions mcp-tools.Definition[]?
function M.set(companion, definitions)
  local by_name = definitions and {}
  for _, definition in ipairs(definitions or {}) do
    by_name[definition.name] = definition
  end
  tools[companion] = by_name
end

--- A tool of a companion.
---@param companion string
---@param name any
---@return mcp-tools.Definition?
function M.tool(companion, name)
  local own = tools[companion]
  return own and type(name) == 'string' and own[name] or nil
end

--- All of them, by name.
---@param companion string
---@return mcp-tools.Definition[]
function M.tools(companion)
  local list = vim.tbl_values(tools[companion] or {})
  table.sort(list, function(a, b)
    return a.name < b.name
  end)
  return list
end

return M
