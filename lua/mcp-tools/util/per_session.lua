--- Keeps a value for each of the latest sessions; of clients without a session, for each name.

local lru = require('mcp-tools.util.lru')

--- Maximum number of sessions.
local MAX_SESSIONS = 64

---@generic T
---@param make fun(): T
---@return fun(ctx: mcp-tools.Ctx): T
return function(make)
  local sessions = lru(MAX_SESSIONS)
  return function(ctx)
    local name = ctx.client and ctx.client.name
    local key = ctx.session or name and 'client ' .. name or ctx.host
    local value = sessions:get(key)
    if value == nil then
      value = make()
      sessions:set(key, value)
    end
    return value
  end
end
