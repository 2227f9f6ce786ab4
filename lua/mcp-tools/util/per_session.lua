--- Keeps a value for each of the latest sessions.

--- Maximum number of sessions.
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
