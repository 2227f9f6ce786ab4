--- Waits that end before a call's deadline.

local timer = require('mcp-tools.util.timer')

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

--- Waits until `condition` returns a truthy value, and returns that. It gives up before the call's deadline.
---@generic T
---@param ctx mcp-tools.Ctx
---@param ms number
---@param subscribe fun(check: fun()): fun() it calls `check` when the condition may hold; its result unsubscribes
---@param condition fun(): T? must not wait; its errors are raised here
---@return T? value nil: the deadline has passed
function M.await_until(ctx, ms, subscribe, condition)
  local value = condition()
  if value or ms <= 0 then
    return value
  end
  local result, fault = ctx:await(function(done)
    local over, limit, unsubscribe = false, nil, nil
    local function finish(...)
      over = true
      limit:stop()
      unsubscribe()
      done(...)
    end
    local function check(is_last)
      if over then
        return
      end
      local ok, found = xpcall(condition, debug.traceback)
      if not ok then
        finish(nil, found)
      elseif found or is_last then
        finish(found)
      end
    end
    limit = timer.after(M.bound(ctx, ms), function()
      check(true)
    end)
    unsubscribe = subscribe(function()
      check(false)
    end)
    ctx:on_cancel(function()
      if not over then
        finish(nil)
      end
    end)
  end)
  if fault then
    error(fault, 0)
  end
  return result
end

return M
