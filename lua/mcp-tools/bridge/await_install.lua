--- Waiting for an installation that somebody else runs.

local log = require('mcp-tools.log')
local interpreter = require('mcp-tools.bridge.interpreter')

local uv = vim.uv

local M = {}

-- ms; looked at by libuv's own threads, and only by an editor whose bridge cannot start.
local INTERVAL = 1000
-- ms until the first look, and nothing is told before: a build step that was started with this editor needs a moment
-- until it can be seen.
local GRACE = 1500

local timer ---@type uv.uv_timer_t?

--- Nobody waits any more.
function M.forget()
  if timer then
    timer:stop()
    timer:close()
    timer = nil
  end
end

--- Calls `built` once, when the environment fits this version of the plugin; `hindered` when it was looked at before.
---@param built fun()
---@param hindered fun(fault: mcp-tools.bridge.PythonFault)
function M.await(built, hindered)
  M.forget()
  local waiting = assert(uv.new_timer())
  timer = waiting
  -- The stamp is what an installation writes last. (A watch would miss one that is written before its first look.)
  local dir = interpreter.environment_dir()
  local stamp, note = vim.fs.joinpath(dir, '.lock-hash'), dir .. '.lock'
  local seen
  local under_way = false -- then it may end without a word

  local look = vim.schedule_wrap(function()
    if timer ~= waiting then
      return
    end
    local fault = interpreter.environment_fault()
    if fault then
      under_way = fault.under_way == true
      return hindered(fault)
    end
    log.info('the Python environment has been built')
    M.forget()
    built()
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
          look()
        end
      end)
    end)
  end)
end

return M
