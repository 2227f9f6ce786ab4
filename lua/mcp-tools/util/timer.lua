--- One-shot and repeating timers.

local uv = vim.uv

local M = {}

---@class mcp-tools.Timer
---@field private handle uv.uv_timer_t?
---@field private fn fun()?
local Timer = {}
Timer.__index = Timer

--- Stops the timer. Further calls do nothing.
function Timer:stop()
  local handle = self.handle
  self.handle, self.fn = nil, nil -- the loop keeps closed handles for a while; release the callback now
  if handle then
    handle:stop()
    handle:close()
  end
end

--- Returns whether the timer is active.
---@return boolean
function Timer:is_running()
  return self.handle ~= nil
end

---@param ms number rounded up
---@param again integer 0 = once
---@param fn fun()
---@return mcp-tools.Timer
local function start(ms, again, fn)
  local self = setmetatable({ handle = assert(uv.new_timer()), fn = fn }, Timer)
  uv.update_time() -- the cached time may be old after blocking work, and the timer would fire early
  self.handle:start(
    ms > 0 and math.ceil(ms) + 1 or 0, -- it counts whole milliseconds, including the current one
    again,
    vim.schedule_wrap(function()
      local due = self.fn -- nil if it was stopped
      if again == 0 then
        self:stop()
      end
      if due then
        due()
      end
    end)
  )
  return self
end

--- Calls `fn` once, after at least `ms`.
---@param ms number
---@param fn fun()
---@return mcp-tools.Timer
function M.after(ms, fn)
  return start(ms, 0, fn)
end

--- Returns a function that calls `fn` on the main loop later, once for several calls.
---@param fn fun()
---@return fun()
function M.soon(fn)
  local due = false
  return function()
    if not due then
      due = true
      vim.schedule(function()
        due = false
        fn()
      end)
    end
  end
end

--- Calls `fn` every `ms`.
---@param ms integer at least 1
---@param fn fun()
---@return mcp-tools.Timer
function M.every(ms, fn)
  return start(ms, ms, fn)
end

return M
