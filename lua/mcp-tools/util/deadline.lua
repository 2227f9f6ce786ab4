--- Deadline: what is left of a call's time, for waits that must end before it does.

local M = {}

--- What a tool needs to say that it waited in vain, ms.
local TO_ANSWER = 200

--- A wait as long as it may be.
---@param ctx { deadline: integer? }
---@param ms number
---@return number ms
function M.bound(ctx, ms)
  if not ctx.deadline then
    return ms
  end
  return math.max(1, math.min(ms, (ctx.deadline - vim.uv.hrtime()) / 1e6 - TO_ANSWER))
end

return M
