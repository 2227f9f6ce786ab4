--- Pauses in long work, so that the main thread stays responsive.

local uv = vim.uv

local M = {}

--- Time between two pauses in ns.
local SLICE = 4e6

--- Returns a pause function that does nothing until the time slice is used up. The slice begins with the iteration of
--- the event loop, because what ran earlier in it blocks the main thread, too.
---@param ctx mcp-tools.Ctx|mcp-tools.Task inside a coroutine
---@return fun() pause
function M.of(ctx)
  local begun = uv.now() * 1e6
  return function()
    if uv.hrtime() - begun > SLICE then
      ctx:await(function(done)
        vim.defer_fn(done, 1)
      end)
      begun = uv.now() * 1e6
    end
  end
end

--- Runs work that calls its pause between pieces. For callbacks outside of coroutines.
---@param work fun(pause: fun())
---@param now? boolean synchronously, without pauses
function M.run(work, now)
  if now then
    return work(function() end)
  end
  local begun = uv.hrtime()
  local go_on ---@type fun()
  go_on = coroutine.wrap(function()
    work(function()
      if uv.hrtime() - begun > SLICE then
        vim.defer_fn(go_on, 1)
        coroutine.yield()
        begun = uv.hrtime()
      end
    end)
  end)
  go_on()
end

return M
