--- Garbage collection, kept out of one large copy.
---
--- LuaJIT pays for what is allocated by steps of its collector: within the copy, and for one large string within
--- whatever comes next, a step for each table. With a large heap a copy of 5 ms takes 40 so. Left out, the heap is
--- collected a little later, step by step.

local M = {}

local function restarted(...)
  collectgarbage('restart')
  return ...
end

---@generic T
---@param fn fun(...): T
---@param ... any its arguments
---@return T
function M.without(fn, ...)
  if not collectgarbage('isrunning') then
    return fn(...)
  end
  collectgarbage('stop')
  local ok, value = restarted(pcall(fn, ...))
  if not ok then
    error(value, 0)
  end
  return value
end

return M
