--- Sessions of the agents that are connected to this editor.

local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')

local M = {}

--- One connection of an agent.
---@class mcp-tools.agents.Session
---@field key string `ctx.session` of its calls
---@field agent string
---@field client string the agent's own name, never used as a key
---@field version string
---@field asked table<string, integer> tool → number of calls
---@field data table state of the agent's integration
---@field push fun(self: mcp-tools.agents.Session, method: string, params: table?, latest: boolean?): boolean sends a
--- notification without waiting. `latest`: it replaces an unsent one with the same method. Returns false if gone

---@type table<string, mcp-tools.agents.Session>
local sessions = {}
---@type string[]
local roots = {}

--- Returns the session of a call (`ctx.session`), nil if it is gone.
---@param key string?
---@return mcp-tools.agents.Session?
function M.session(key)
  return key and sessions[key] or nil
end

--- Returns the sessions of an agent, or all.
---@param agent? string
---@return mcp-tools.agents.Session[] sorted by key
function M.sessions(agent)
  local list = {}
  for _, session in vim.spairs(sessions) do
    if not agent or session.agent == agent then
      list[#list + 1] = session
    end
  end
  return list
end

--- Returns whether a file is in a workspace folder of this editor, so that agents may show it.
---@param path string resolved
---@return boolean
function M.is_in_workspace(path)
  local directories = #roots > 0 and roots or { project.root() }
  return vim.iter(directories):any(function(directory)
    return paths.inside(path, directory)
  end)
end

--- Sets the workspace folders that agents see, as resolved paths (agents/).
---@param list string[]
function M.set_roots(list)
  roots = list
end

--- Adds a session (agents/).
---@param session mcp-tools.agents.Session
function M.add(session)
  sessions[session.key] = session
end

--- Removes a session (agents/).
---@param key string
function M.remove(key)
  sessions[key] = nil
end

return M
