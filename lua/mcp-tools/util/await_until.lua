--- Waits in a coroutine until a condition holds.

local deadline = require('mcp-tools.util.deadline')
local timer = require('mcp-tools.util.timer')

--- Waits until `condition` returns a truthy value, and returns that. It gives up before the call's deadline.
---@generic T
---@param ctx mcp-tools.Ctx
---@param ms number
---@param subscribe fun(check: fun()): fun() it calls `check` when the condition may hold; its result unsubscribes
---@param condition fun(): T? must not wait; its errors are raised here
---@return T? value nil: the deadline has passed
return function(ctx, ms, subscribe, condition)
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
    limit = timer.after(deadline.bound(ctx, ms), function()
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
