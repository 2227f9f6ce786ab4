--- The door to the bridge, read in the start-up of the editor: each function loads the file that it lies in.

local global_state = require('mcp-tools.util.global_state')

---@class mcp-tools.bridge: mcp-tools.bridge.Control
---@field is_running fun(): boolean
---@field get_port fun(): integer?
---@field get_auth_token fun(): string?
---@field endpoint fun(): { url: string, token: string, port: integer }?
---@field relay fun(): mcp-tools.bridge.Relay?
---@field status fun(): mcp-tools.bridge.Status
local M = {}

local FILES = {
  start = 'control',
  stop = 'control',
  restart = 'control',
  install = 'control',
  is_wanted = 'control',
  is_running = 'current',
  get_port = 'current',
  get_auth_token = 'current',
  endpoint = 'current',
  relay = 'acp',
  status = 'current',
}

--- Starts the bridge when this editor should have one: once there is a UI, not in short-lived editors.
function M.autostart()
  require('mcp-tools.bridge.autostart').run(function()
    if not M.is_wanted() then
      M.start()
    end
  end)
end

if global_state.bridge then
  -- Start-up cost: only a plugin that is loaded again has a bridge by now, which control replaces.
  require('mcp-tools.bridge.control')
end

return setmetatable(M, {
  __index = function(_, key)
    return FILES[key] and require('mcp-tools.bridge.' .. FILES[key])[key]
  end,
})
