--- Companions: the agents that have found this editor, each by a channel of its own.
---
--- Receives: sessions as they come and go, from ide/.
--- Sends: them to the files of companions, whose tools know no more than `ctx.session`.
--- Does not know about: agents, the bridge, what is sent.

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

--- One has come (ide/).
---@param session mcp-tools.companion.Session
function M.add(session)
  sessions[session.key] = session
end

--- One has gone (ide/).
---@param key string
function M.remove(key)
  sessions[key] = nil
end

return M
