--- Limits waits to the time left before a call's deadline.

local M = {}

--- Time that a tool needs to report a timeout, in ms.
local REPORT_MS = 200

--- Returns the longest allowed wait.
---@param ctx { deadline: integer? }
---@param ms number
---@return number ms
function M.bound(ctx, ms)
  if not ctx.deadline then
    return ms
  end
  return math.max(1, math.min(ms, (ctx.deadline - vim.uv.hrtime()) / 1e6 - REPORT_MS))
end

return M
