--- Sweeper: forgets outcomes that nobody came for, when their time is up, by one timer for all of them.
---
--- Receives: calls that have ended and are kept.
--- Sends: the ids of those to forget.
--- Does not know about: who fetches an outcome, what becomes of an id.

local timer = require('mcp-tools.util.timer')

local uv = vim.uv

local M = {}

---@class mcp-tools.Sweeper
---@field private calls table<string, mcp-tools.Call>
---@field private ttl fun(): integer ms
---@field private forget fun(id: string)
---@field private timer mcp-tools.Timer? due with the oldest; none while there are none
local Sweeper = {}
Sweeper.__index = Sweeper

--- Makes one.
---@param opts { calls: table<string, mcp-tools.Call>, ttl: (fun(): integer), forget: fun(id: string) }
---@return mcp-tools.Sweeper
function M.new(opts)
  return setmetatable({ calls = opts.calls, ttl = opts.ttl, forget = opts.forget }, Sweeper)
end

--- Forgets what is due.
---@return integer? oldest ns, when the first of those ended that are left
function Sweeper:sweep()
  local due, oldest = uv.hrtime() - self.ttl() * 1e6, nil
  for id, call in pairs(self.calls) do
    local ended_at = call.ended_at
    if ended_at and ended_at <= due then
      self.forget(id)
    elseif ended_at and (not oldest or ended_at < oldest) then
      oldest = ended_at
    end
  end
  return oldest
end

--- A call that is kept has ended.
---@param ended_at integer ns
function Sweeper:later(ended_at)
  if self.timer then
    return
  end
  local ns = ended_at + self.ttl() * 1e6 - uv.hrtime()
  self.timer = timer.after(math.max(0, ns / 1e6), function()
    self.timer = nil
    local oldest = self:sweep()
    if oldest then
      self:later(oldest)
    end
  end)
end

return M
