--- Tools of terminal agents: each agent has its own, which no other client sees.

local M = {}

---@type table<string, table<string, mcp-tools.Definition>>
local tools = {}

--- Sets the tools of an agent; nil removes the agent.
---@param companion string name of the agent
---@param definitions mcp-tools.Definition[]?
function M.set(companion, definitions)
  local by_name = definitions and {}
  for _, definition in ipairs(definitions or {}) do
    by_name[definition.name] = definition
  end
  tools[companion] = by_name
end

--- Returns a tool of an agent.
---@param companion string
---@param name any
---@return mcp-tools.Definition?
function M.tool(companion, name)
  local own = tools[companion]
  return own and type(name) == 'string' and own[name] or nil
end

--- Returns all tools of an agent, sorted by name.
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
