--- Waits while autocommands run.
---
--- An autocommand that waits, such as a formatter, processes events, so that a call can run in the middle of it. Neovim
--- then runs no other autocommands: files are read without their type and written without formatters, and the user is
--- asked about files that have changed.

local errors = require('mcp-tools.errors')
local timer = require('mcp-tools.util.timer')

local M = {}

--- Interval of the checks in ms: no event reports the end of autocommands.
local INTERVAL = 10
--- Maximum number of checks: an autocommand may wait for the user.
local MAX_CHECKS = 500

--- Returns whether an autocommand is running.
---@return boolean
function M.are_running()
  for _, word in ipairs({ '<abuf>', '<amatch>' }) do
    local ok, value = pcall(vim.fn.expand, word) -- with 'verbose', an error if there is none
    if ok and value ~= '' then
      return true
    end
  end
  return false
end

--- Calls back on the main loop when no autocommand is running, immediately if possible.
---@param cb fun(err: mcp-tools.Error?) `err`: it takes too long
---@param checks? integer number of checks before
function M.when_over(cb, checks)
  checks = checks or 0
  if not M.are_running() then
    return cb()
  elseif checks == MAX_CHECKS then
    return cb(errors.new('busy', 'Neovim runs an autocommand, which may be waiting for the user; try again later'))
  end
  timer.after(INTERVAL, function()
    M.when_over(cb, checks + 1)
  end)
end

return M
