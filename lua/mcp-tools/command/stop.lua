--- `:McpTools stop`: ends the bridge.

local bridge = require('mcp-tools.bridge')
local notify = require('mcp-tools.notify')

---@type mcp-tools.Subcommand
return {
  description = 'stop the bridge',
  run = function()
    bridge.stop(function()
      notify.info('the bridge has stopped')
    end)
  end,
}
