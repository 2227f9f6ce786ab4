--- Companions: the agents that have found this editor, each by a channel of its own.

local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')

local M = {}

--- One connection of an agent.
---@class mcp-tools.companion.Session
---@field key string as `ctx.session` of its calls
---@field companion string
---@field client string the name that it gives itself; never a key to anything
---@field version string
---@field asked table<string, integer> tool → how often it was called
---@field data table whatever the companion keeps of it
---@field push fun(self: mcp-tools.companion.Session, method: string, params: table?, latest: boolean?): boolean sends a
--- notification; never waits. `latest`: it takes the place of one of this method that is not read yet. False = gone

---@type table<string, mcp-tools.companion.Session>
local sessions = {}
---@type string[]
local roots = {}

--- The session of a call (`ctx.session`); nil when it is gone.
---@param key string?
---@return mcp-tools.companion.Session?
function M.session(key)
  return key and sessions[key] or nil
end

--- Those of a companion, or all.
---@param companion? string
---@return mcp-tools.companion.Session[] in the order of their keys
function M.sessions(companion)
  local list = {}
  for _, session in vim.spairs(sessions) do
    if not companion or session.companion == companion then
      list[#list + 1] = session
    end
  end
  return list
end

--- Is a file one that an agent may show to the person: of a folder that this editor tells agents of?
---@param path string resolved
---@return boolean
function M.is_in_workspace(path)
  local folders = #roots > 0 and roots or { project.root() }
  return vim.iter(folders):any(function(folder)
    return paths.inside(path, folder)
  end)
end

--- The folders that agents are told of, by their real paths (agents/).
---@param list string[]
function M.work_in(list)
  roots = list
end

--- One has come (agents/).
---@param session mcp-tools.companion.Session
function M.add(session)
  sessions[session.key] = session
end

--- One has gone (agents/).
---@param key string
function M.remove(key)
  sessions[key] = nil
end

return M
