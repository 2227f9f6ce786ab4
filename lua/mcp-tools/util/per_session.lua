--- Keeps a value for each of the latest sessions; of clients without a session, for each name. Clients that say neither
--- share one.

local lru = require('mcp-tools.util.lru')

--- Maximum number of sessions.
local MAX_SESSIONS = 64

---@generic T
---@param make fun(): T
---@return fun(ctx: mcp-tools.Ctx): T, boolean value, and whether it is of this client alone
return function(make)
  local sessions = lru(MAX_SESSIONS)
  return function(ctx)
    local name = ctx.client and ctx.client.name or ''
    local key = ctx.session or name ~= '' and 'client ' .. name or ctx.host
    local value = sessions:get(key)
    if value == nil then
      value = make()
      sessions:set(key, value)
    end
    return value, ctx.session ~= nil or name ~= '' or ctx.host ~= 'mcp'
  end
end
