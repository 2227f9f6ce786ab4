--- Who started something that outlives its call: a session; for a client without sessions its name. Always within one
--- project.

local M = {}

---@class mcp-tools.Owner
---@field session string?
---@field client string
---@field root string

--- The owner of what a call starts.
---@param call { session: string?, client: { name: string? }?, host: string, root: string } a call or its ctx
---@return mcp-tools.Owner
function M.of(call)
  return { session = call.session, client = (call.client or {}).name or call.host, root = call.root }
end

--- Did this session start it?
---@param owner mcp-tools.Owner
---@param call table a call or its ctx
---@return boolean
function M.is_own(owner, call)
  return owner.session == call.session and M.is_related(owner, call)
end

--- Did a client of this name start it, maybe in a session that has ended? Clients choose their names, so it takes the
--- user's approval to act on what is only related.
---@param owner mcp-tools.Owner
---@param call table a call or its ctx
---@return boolean
function M.is_related(owner, call)
  local own = M.of(call)
  return owner.client == own.client and owner.root == own.root
end

return M
