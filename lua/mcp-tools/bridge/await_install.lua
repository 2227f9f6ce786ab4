--- Waits for an installation of the Python environment by another process.

local log = require('mcp-tools.log')
local interpreter = require('mcp-tools.bridge.interpreter')

local uv = vim.uv

local M = {}

-- Interval of the checks in ms. They run in libuv's threads, and only while the bridge cannot start.
local INTERVAL = 1000
-- Delay of the first check in ms: a build step that started together with this editor is not visible at once.
local GRACE = 1500

local timer ---@type uv.uv_timer_t?

--- Stops waiting.
function M.cancel()
  if timer then
    timer:stop()
    timer:close()
    timer = nil
  end
end

--- Calls `on_built` once when the environment fits this version of the plugin, and `on_fault` for each check that finds
--- a change but no such environment.
---@param on_built fun()
function M.await(on_built, on_fault)
  M.cancel()
  local waiting = assert(uv.new_timer())
  timer = waiting
  -- An installation writes the stamp last. (A file watch would miss a stamp written before it starts.)
  local dir = interpreter.environment_dir()
  local stamp, note = vim.fs.joinpath(dir, '.lock-hash'), dir .. '.lock'
  local seen
  local under_way = false -- an installation that is running may end without a change of these files

  local check = vim.schedule_wrap(function()
    if timer ~= waiting then
      return
    end
    local fault = interpreter.environment_fault()
    if fault then
      under_way = fault.under_way == true
      return on_fault(fault)
    end
    log.info('the Python environment has been built')
    M.cancel()
    on_built()
  end)

  ---@param stat? uv.fs_stat.result
  local function version(stat)
    return stat and ('%d.%d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.ino) or 'none'
  end

  waiting:start(GRACE, INTERVAL, function()
    uv.fs_stat(stamp, function(_, stamped)
      uv.fs_stat(note, function(_, noted)
        local now = version(stamped) .. version(noted)
        if under_way or now ~= seen then
          seen = now
          check()
        end
      end)
    end)
  end)
end

return M
