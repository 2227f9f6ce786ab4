--- Owner of work that outlives its call, within a project: a session or, for a client without sessions, its name.

local M = {}

---@class mcp-tools.Owner
---@field session string?
---@field client string
---@field root string

--- Returns the owner of work that a call starts.
---@param call { session: string?, client: { name: string? }?, host: string, root: string } a call or its ctx
---@return mcp-tools.Owner
function M.of(call)
  return { session = call.session, client = (call.client or {}).name or call.host, root = call.root }
end

--- Returns whether the caller's session is the owner.
---@param owner mcp-tools.Owner
---@param call table a call or its ctx
---@return boolean
function M.is_own(owner, call)
  return owner.session == call.session and M.is_related(owner, call)
end

--- Returns whether a client with this name is the owner, possibly in an ended session. Clients choose their names, so
--- acting on related work needs the user's approval.
---@param owner mcp-tools.Owner
---@param call table a call or its ctx
---@return boolean
function M.is_related(owner, call)
  local own = M.of(call)
  return owner.client == own.client and owner.root == own.root
end

return M
