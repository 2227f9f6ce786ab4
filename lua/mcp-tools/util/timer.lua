--- Timer: something is done once after a while, or again and again; stopped and closed as one.

local uv = vim.uv

local M = {}

---@class mcp-tools.Timer
---@field private handle uv.uv_timer_t?
---@field private fn fun()?
local Timer = {}
Timer.__index = Timer

--- Stops it. Once is enough, and more does no harm.
function Timer:stop()
  local handle = self.handle
  self.handle, self.fn = nil, nil -- the loop keeps what is closed for a while, but not what it would have called
  if handle then
    handle:stop()
    handle:close()
  end
end

--- Is it still going to call?
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
  uv.update_time() -- the loop's own time may be old by as long as the editor was busy, and the timer early by as much
  self.handle:start(
    ms > 0 and math.ceil(ms) + 1 or 0, -- it counts whole milliseconds, and the present one is not over
    again,
    vim.schedule_wrap(function()
      local due = self.fn -- none when it was stopped meanwhile
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

--- Calls `fn` once, not earlier than in `ms`.
---@param ms number
---@param fn fun()
---@return mcp-tools.Timer
function M.after(ms, fn)
  return start(ms, 0, fn)
end

--- Calls `fn` every `ms`.
---@param ms integer at least 1
---@param fn fun()
---@return mcp-tools.Timer
function M.every(ms, fn)
  return start(ms, ms, fn)
end

return M
