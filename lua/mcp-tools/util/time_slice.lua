--- Turns for the editor within work that takes longer than a keystroke should wait.

local uv = vim.uv

local M = {}

--- Work in one go, ns; then keys and calls of others are seen to.
local SLICE = 4e6

--- A pause that is none as long as little time has passed.
---@param ctx mcp-tools.Ctx in a coroutine
---@return fun() pause
function M.of(ctx)
  local begun = uv.hrtime()
  return function()
    if uv.hrtime() - begun > SLICE then
      ctx:await(function(done)
        vim.defer_fn(done, 1)
      end)
      begun = uv.hrtime()
    end
  end
end

--- Runs work that calls its pause between pieces; for callbacks, where no coroutine is.
---@param work fun(pause: fun())
---@param now? boolean in one go, before this returns
function M.run(work, now)
  if now then
    return work(function() end)
  end
  local begun = uv.hrtime()
  local go_on
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
