--- Tools of terminal agents: each agent has its own, which no other client sees.

local M = {}

---@type table<string, table<string, mcp-tools.Definition>>
local tools = {}

--- Sets the tools of an agent; nil removes the agent.
---@param agent string name of the agent
---@param definitions mcp-tools.Definition[]?
function M.set(agent, definitions)
  local by_name = definitions and {}
  for _, definition in ipairs(definitions or {}) do
    by_name[definition.name] = definition
  end
  tools[agent] = by_name
end

--- Returns a tool of an agent.
---@param agent string
---@param name any
---@return mcp-tools.Definition?
function M.tool(agent, name)
  local own = tools[agent]
  return own and type(name) == 'string' and own[name] or nil
end

--- Returns all tools of an agent, sorted by name.
---@param agent string
---@return mcp-tools.Definition[]
function M.tools(agent)
  local list = vim.tbl_values(tools[agent] or {})
  table.sort(list, function(a, b)
    return a.name < b.name
  end)
  return list
end

return M
