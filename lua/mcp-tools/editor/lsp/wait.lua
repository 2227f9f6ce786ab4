--- Waiting for what servers do: until a condition holds, with a limit, in the coroutine of a `run` tool.
---
--- Receives: a condition, milliseconds, the ctx whose end is the wait's.
--- Sends: what the condition came to.
--- Does not know about: which servers, what for.

local deadline = require('mcp-tools.util.deadline')
local notifications = require('mcp-tools.editor.lsp.notifications')
local timer = require('mcp-tools.util.timer')

local M = {}

--- The condition is looked at when a server says something, and this often, since not everything is said.
local TICK_MS = 20

--- Waits until `condition` returns something that is true, and returns that. It ends before the call's time does.
---@generic T
---@param ctx mcp-tools.Ctx
---@param ms number
---@param condition fun(): T? must not wait; what it throws is thrown here
---@return T? value nil: the time is over
function M.until_(ctx, ms, condition)
  local value = condition()
  if value or ms <= 0 then
    return value
  end
  local over = vim.uv.hrtime() + deadline.bound(ctx, ms) * 1e6
  local result, fault = ctx:await(function(done)
    local ticks, unlisten
    local function finish(...)
      ticks:stop()
      unlisten()
      done(...)
    end
    local function look()
      if not ticks:is_running() then
        return
      end
      local ok, found = xpcall(condition, debug.traceback)
      if not ok then
        finish(nil, found)
      elseif found or vim.uv.hrtime() > over then
        finish(found)
      end
    end
    ticks = timer.every(TICK_MS, look)
    unlisten = notifications.on_news(look)
    ctx:on_cancel(function()
      finish(nil)
    end)
  end)
  if fault then
    error(fault, 0)
  end
  return result
end

--- Lets some time pass.
---@param ctx mcp-tools.Ctx
---@param ms number
function M.pause(ctx, ms)
  M.until_(ctx, ms, function() end)
end

return M
