--- Checks the mounted servers.

local mounts = require('mcp-tools.mounts')
local sanitize = require('mcp-tools.util.sanitize')

local health = vim.health

local M = {}

---@type table<string, fun(text: string, status: mcp-tools.MountStatus)>
local STATES = {
  ready = health.ok,
  connecting = health.info,
  off = health.info,
  stopped = function(text)
    health.info(text .. ': the bridge is not running')
  end,
  waiting = function(text, status)
    health.error(text, ('See :McpTools log; `:McpTools mounts retry %s` retries now'):format(status.name))
  end,
  wrong = function(text)
    health.error(text, 'Correct it, then run `:McpTools mounts retry`')
  end,
}

function M.check()
  local list = mounts.status()
  if #list == 0 then
    health.info('none (see :h mcp-tools-mounts)')
  end
  for _, status in ipairs(list) do
    STATES[status.state](mounts.describe(status), status)
    for _, fault in ipairs(status.faults) do
      local text = ('%s: not exposed: %s'):format(status.name, sanitize.line(fault))
      health.warn(text, 'Report it to the author of the server')
    end
  end
end

return M
