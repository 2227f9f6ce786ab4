--- Turns for the editor within work that takes longer than a keystroke should wait.
---
--- Receives: the ctx of a `run` function.
--- Sends: a function to call between pieces of work.
--- Does not know about: the work.

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

return M
