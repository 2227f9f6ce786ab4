--- Keeps a value for each of the latest sessions; of clients without a session, for each name. Clients that say neither
--- share one.

local identity = require('mcp-tools.util.identity')
local lru = require('mcp-tools.util.lru')

--- Maximum number of sessions.
local MAX_SESSIONS = 64

---@generic T
---@param make fun(): T
---@return fun(ctx: mcp-tools.Ctx|mcp-tools.Call): T, boolean # the value, and whether it is of this client alone
return function(make)
  local sessions = lru(MAX_SESSIONS)
  return function(ctx)
    local own = identity(ctx)
    local key = own or ctx.host
    local value = sessions:get(key)
    if value == nil then
      value = make()
      sessions:set(key, value)
    end
    return value, own ~= nil
  end
end
