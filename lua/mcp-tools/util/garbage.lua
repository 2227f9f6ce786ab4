--- Runs one large copy without garbage collection.
---
--- LuaJIT runs collector steps in proportion to allocations, so with a large heap a copy of 5 ms takes 40 ms. Without
--- them, the heap is collected incrementally a little later.

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
