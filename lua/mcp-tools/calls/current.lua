--- The running handler: whose code this is, by the coroutine that it runs in.
---
--- A handler in the style `execute` runs in no coroutine of its own. While it lets events through (`vim.wait()`,
--- `input()`), a timer of anybody else looks like its code, and a call made there counts as its own. To give it a
--- coroutine would be worse: code that looks for one would yield in it, and nothing would resume that.
---
--- Every entry is taken out again by hand: in a table with weak keys it would stay for good, since it holds its key.

local M = {}

---@type table<thread|'main', mcp-tools.Call>
local calls = {}
---@type table<thread, fun()>
local steps = {}

---@return thread|'main'
local function here()
  return coroutine.running() or 'main'
end

--- The call whose handler is running right now, if any. What a handler leaves to a timer or a callback is not seen.
---@return mcp-tools.Call?
function M.call()
  return calls[here()]
end

--- How the running coroutine goes on, when it is that of a `run` handler. Only so may it be resumed.
---@return fun()?
function M.step()
  return steps[here()]
end

--- A coroutine is that of a call from now on, until it is released.
---@param co thread
---@param call mcp-tools.Call
---@param step fun()
function M.adopt(co, call, step)
  calls[co], steps[co] = call, step
end

--- Nothing of the coroutine will run any more.
---@param co thread
function M.release(co)
  calls[co], steps[co] = nil, nil
end

--- Runs `fn` as code of a call; it must not throw.
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
