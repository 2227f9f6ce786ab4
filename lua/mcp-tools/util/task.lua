--- Runs coroutines outside of calls, with a ctx for functions that wait.

local M = {}

---@class mcp-tools.Task
---@field await fun(self, fn: fun(done: fun(...))): any
---@field uv fun(self, fn: function, ...): any, string?
local Task = {}

--- Starts an asynchronous operation in a coroutine and returns the arguments of `done`.
---@param fn fun(done: fun(...))
---@param suspend fun() yields
---@param resume fun() resumes the coroutine
---@return any ...
function M.await(fn, suspend, resume)
  local results, waiting
  fn(function(...)
    if results then
      return
    end
    results = vim.F.pack_len(...)
    if waiting then
      resume()
    end
  end)
  if not results then
    waiting = true
    suspend()
  end
  return vim.F.unpack_len(results)
end

--- Starts an asynchronous operation and returns the arguments of `done`, on the main loop.
---@param fn fun(done: fun(...))
---@return any ...
function Task.await(_, fn)
  local co = assert(coroutine.running())
  return M.await(fn, coroutine.yield, function()
    local ok, thrown = coroutine.resume(co)
    if not ok then
      error(thrown, 0)
    end
  end)
end

--- Calls an asynchronous libuv function and waits for it without blocking.
---@param fn function whose last argument is a callback
---@param ... any its other arguments
---@return any? value true if there is no value
---@return string? err
function Task:uv(fn, ...)
  local args = { ... }
  local err, value = self:await(function(done)
    args[#args + 1] = vim.schedule_wrap(done)
    fn(unpack(args))
  end)
  if err then
    return nil, err
  end
  return value == nil and true or value
end

M.uv = Task.uv

--- Runs `fn` in a new coroutine. Its error is passed to `cb`.
---@param fields table fields of the ctx for `fn`
---@param fn fun(task: mcp-tools.Task): any
---@param cb fun(ok: boolean, value: any) called at the end
function M.run(fields, fn, cb)
  local task = setmetatable(vim.tbl_extend('force', {}, fields), { __index = Task })
  coroutine.wrap(function()
    cb(xpcall(fn, debug.traceback, task))
  end)()
end

return M
