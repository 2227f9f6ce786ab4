--- Waits while autocommands run.
---
--- An autocommand that waits, such as a formatter, processes events, so that a call can run in the middle of it. Neovim
--- then runs no other autocommands: files are read without their type and written without formatters, and the user is
--- asked about files that have changed.

local timer = require('mcp-tools.util.timer')

local M = {}

--- Interval of the checks in ms: no event reports the end of autocommands.
local INTERVAL = 10

--- Returns whether an autocommand is running.
---@return boolean
function M.are_running()
  local ok, bufnr = pcall(vim.fn.expand, '<abuf>') -- with 'verbose', an error if there is none
  return ok and bufnr ~= ''
end

--- Calls back on the main loop when no autocommand is running, immediately if possible.
---@param cb fun()
function M.when_over(cb)
  if not M.are_running() then
    return cb()
  end
  timer.after(INTERVAL, function()
    M.when_over(cb)
  end)
end

return M
