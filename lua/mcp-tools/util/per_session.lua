--- Something kept for each session of a client, of the latest sessions.
---
--- Receives: what is kept in the beginning; the ctx of a call.
--- Sends: what its session has.
--- Does not know about: when a session ends. Nobody says so; the oldest give way.

--- Sessions that are remembered.
local MAX_SESSIONS = 64

---@generic T
---@param make fun(): T
---@return fun(ctx: mcp-tools.Ctx): T
return function(make)
  local sessions, order = {}, {}
  return function(ctx)
    local key = ctx.session or ctx.host
    if not sessions[key] then
      sessions[key] = make()
      table.insert(order, key)
      if #order > MAX_SESSIONS then
        sessions[table.remove(order, 1)] = nil
      end
    end
    return sessions[key]
  end
end
