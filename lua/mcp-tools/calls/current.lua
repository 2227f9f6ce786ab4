--- The call whose handler is running, found by the current coroutine.
---
--- `execute` handlers have no coroutine of their own. While one processes events (`vim.wait()`, `input()`), the code of
--- foreign timers is taken for its code. A coroutine would be worse: a library that detects one would yield in it, and
--- nothing would resume it.
---
--- Entries are removed explicitly. Weak keys would not work: the values refer to the keys.

local M = {}

---@type table<thread|'main', mcp-tools.Call>
local calls = {}
---@type table<thread, fun()>
local steps = {}

---@return thread|'main'
local function here()
  return coroutine.running() or 'main'
end

--- Returns the call whose handler is running, if any. Timers and callbacks that a handler started do not count.
---@return mcp-tools.Call?
function M.call()
  return calls[here()]
end

--- Returns the function that resumes the current coroutine, if it belongs to a `run` handler. Nothing else may
--- resume it.
---@return fun()?
function M.step()
  return steps[here()]
end

--- Assigns a coroutine to a call until it is released.
---@param co thread
---@param call mcp-tools.Call
---@param step fun()
function M.adopt(co, call, step)
  calls[co], steps[co] = call, step
end

--- Removes a coroutine that will not run any more.
---@param co thread
function M.release(co)
  calls[co], steps[co] = nil, nil
end

--- Runs `fn` as the handler of a call; it must not throw.
---@generic T
---@param call mcp-tools.Call
---@param fn fun(...): T
---@return T ...
function M.within(call, fn, ...)
  local place = here()
  local before = calls[place]
  calls[place] = call
  local one, two, three = fn(...)
  calls[place] = before
  return one, two, three
end

return M
