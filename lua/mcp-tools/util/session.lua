--- Who has made a call, and values and limits for each of them.

local errors = require('mcp-tools.errors')
local lru = require('mcp-tools.util.lru')

local M = {}

--- Maximum number of sessions with a value.
local MAX_SESSIONS = 64

--- Returns what distinguishes the client of a call from others: its session, otherwise its name; of callers inside
--- Neovim, the host. Nil: an MCP client without session and name.
---@param ctx { session: string?, client: { name: string? }?, host: string? }
---@return string?
function M.identity(ctx)
  local name = ctx.client and ctx.client.name or ''
  return ctx.session or name ~= '' and 'client ' .. name or ctx.host ~= 'mcp' and ctx.host or nil
end

--- Keeps a value for each of the latest sessions; of clients without a session, for each name. Clients that have
--- neither share one.
---@generic T
---@param make fun(): T
---@return fun(ctx: mcp-tools.Ctx|mcp-tools.Call): T, boolean # the value, and whether it is of this client alone
function M.keep(make)
  local sessions = lru(MAX_SESSIONS)
  return function(ctx)
    local own = M.identity(ctx)
    local key = own or ctx.host
    local value = sessions:get(key)
    if value == nil then
      value = make()
      sessions:set(key, value)
    end
    return value, own ~= nil
  end
end

--- Limits how often a session may do something that needs no approval: `burst` calls immediately, then `per_second`.
--- Calls of the user's own Lua are not limited.
---@param burst integer
---@param per_second number
---@return fun(ctx: mcp-tools.Ctx): mcp-tools.Error? take nil: allowed
function M.limit(burst, per_second)
  local bucket_of = M.keep(function()
    return { tokens = burst, at = vim.uv.hrtime() }
  end)
  return function(ctx)
    if ctx.host == 'nvim' or ctx.host == 'command' then
      return nil
    end
    local bucket, now = bucket_of(ctx), vim.uv.hrtime()
    bucket.tokens = math.min(burst, bucket.tokens + (now - bucket.at) / 1e9 * per_second)
    bucket.at = now
    if bucket.tokens >= 1 then
      bucket.tokens = bucket.tokens - 1
      return nil
    end
    local ms = math.ceil((1 - bucket.tokens) / per_second * 1000)
    local err = errors.new('rate_limited', ('too many of these calls in a short time; try again in %d ms'):format(ms))
    err.retry_after_ms = ms
    return err
  end
end

--- Maximum number of questions, or of reviews, that wait for the user, in all and per session.
local MAX_WAITING, MAX_PER_SESSION = 32, 8

--- Returns how many wait for the user if a client may not add one: too many do, in all or of this client.
---@param clients any[] who each one that waits is from
---@param own any the same of the client
---@param name string what waits, in the plural
---@return string? count such as "8 reviews of this session"
function M.crowd(clients, own, name)
  local count = #vim.tbl_filter(function(client)
    return vim.deep_equal(client, own)
  end, clients)
  if count >= MAX_PER_SESSION then
    return ('%d %s of this session'):format(count, name)
  end
  return #clients >= MAX_WAITING and ('%d %s'):format(#clients, name) or nil
end

-- Owners of work that outlives its call, within a project: a session or, for a client without sessions, its name ------

---@class mcp-tools.Owner
---@field session string?
---@field client string
---@field root string

--- Returns the owner of work that a call starts.
---@param call { session: string?, client: { name: string? }?, host: string, root: string } a call or its ctx
---@return mcp-tools.Owner
function M.owner_of(call)
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
  local own = M.owner_of(call)
  return owner.client == own.client and owner.root == own.root
end

return M
