-- Receives who waits for the Python environment. Sends one call when somebody has built it: a plugin manager whose
-- build step runs beside the editor, `make install` in another window, another editor.
-- Does not know about how it is built, or what is started then.

local log = require('mcp-tools.log')
local python = require('mcp-tools.bridge.python')

local uv = vim.uv

local M = {}

-- ms; looked at by libuv's own threads, and only by an editor whose bridge cannot start.
local INTERVAL = 1000

local poll ---@type uv.uv_fs_poll_t?

--- Nobody waits any more.
function M.forget()
  if poll then
    poll:stop()
    poll:close()
    poll = nil
  end
end

--- Calls `cb` once, when the environment fits this version of the plugin.
---@param cb fun()
function M.await(cb)
  M.forget()
  local watched = assert(uv.new_fs_poll())
  poll = watched
  -- The stamp is what an installation writes last.
  watched:start(
    vim.fs.joinpath(python.environment_dir(), '.lock-hash'),
    INTERVAL,
    vim.schedule_wrap(function()
      if poll == watched and not python.environment_fault() then
        log.info('the Python environment has been built')
        M.forget()
        cb()
      end
    end)
  )
end

return M
