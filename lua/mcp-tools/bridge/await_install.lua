-- Receives who waits for the Python environment. Sends one call when somebody has built it: a plugin manager whose
-- build step runs beside the editor, `make install` in another window, another editor.
-- Does not know about how it is built, or what is started then.

local log = require('mcp-tools.log')
local interpreter = require('mcp-tools.bridge.interpreter')

local uv = vim.uv

local M = {}

-- ms; looked at by libuv's own threads, and only by an editor whose bridge cannot start.
local INTERVAL = 1000

local timer ---@type uv.uv_timer_t?

--- Nobody waits any more.
function M.forget()
  if timer then
    timer:stop()
    timer:close()
    timer = nil
  end
end

--- Calls `cb` once, when the environment fits this version of the plugin.
---@param cb fun()
function M.await(cb)
  M.forget()
  local waiting = assert(uv.new_timer())
  timer = waiting
  -- The stamp is what an installation writes last. (A watch would miss one that is written before its first look.)
  local stamp = vim.fs.joinpath(interpreter.environment_dir(), '.lock-hash')
  local seen

  local look = vim.schedule_wrap(function()
    if timer == waiting and not interpreter.environment_fault() then
      log.info('the Python environment has been built')
      M.forget()
      cb()
    end
  end)

  waiting:start(INTERVAL, INTERVAL, function()
    uv.fs_stat(stamp, function(_, stat)
      local version = stat and ('%d.%d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.ino)
      if version and version ~= seen then
        seen = version
        look()
      end
    end)
  end)
end

return M
