--- Session state: what tools keep for a session (`ctx.state`), made by a definition's `state()`.
---
--- Receives: a definition and the session of a call.
--- Sends: the table that this tool has in this session.
--- Does not know about: when a session ends. Nobody says so; the ones unused for longest give way.

local M = {}

--- Sessions that are kept; well above `limits.sessions`, since a session may be revived.
local SESSIONS = 256

---@class mcp-tools.SessionStates
---@field sessions table<string, { used_at: integer, tools: table<string, { made_by: function, value: table }> }>
local SessionStates = {}
SessionStates.__index = SessionStates

---@return mcp-tools.SessionStates
function M.new()
  return setmetatable({ sessions = {} }, SessionStates)
end

--- A tool's state in a session, made on first use and anew when the tool was loaded again. Without a session it lasts
--- for one call.
---@param definition mcp-tools.Definition
---@param session string?
---@return table
function SessionStates:get(definition, session)
  if not session then
    return definition.state()
  end
  local kept = self.sessions[session]
  if not kept then
    kept = { tools = {}, used_at = vim.uv.hrtime() }
    self.sessions[session] = kept
    self:make_room()
  end
  kept.used_at = vim.uv.hrtime()
  local state = kept.tools[definition.name]
  if not state or state.made_by ~= definition.state then -- another definition may want another shape
    state = { made_by = definition.state, value = definition.state() }
    kept.tools[definition.name] = state
  end
  return state.value
end

function SessionStates:make_room()
  local count, oldest = 0, nil
  for session, kept in pairs(self.sessions) do
    count = count + 1
    if not oldest or kept.used_at < self.sessions[oldest].used_at then
      oldest = session
    end
  end
  if count > SESSIONS then
    self.sessions[oldest] = nil
  end
end

return M
