--- Public functions of the bridge; each loads its file when it is first used, which keeps the start-up short.

local global_state = require('mcp-tools.util.global_state')

---@class mcp-tools.bridge: mcp-tools.bridge.Control
---@field is_running fun(): boolean
---@field get_port fun(): integer?
---@field get_auth_token fun(): string?
---@field endpoint fun(): { url: string, token: string, port: integer }?
---@field relay fun(): mcp-tools.bridge.Relay?
---@field acp_entry fun(transport: string): table?, mcp-tools.Error?
---@field status fun(): mcp-tools.bridge.Status
local M = {}

--- Functions that load bridge/control.lua; all others are in bridge/current.lua.
local CONTROL = { 'start', 'stop', 'restart', 'install', 'is_wanted', 'show_hint' }

--- Starts the bridge once there is a UI, except in short-lived editors.
function M.autostart()
  require('mcp-tools.bridge.autostart').run(function()
    M.show_hint()
    if not M.is_wanted() then
      M.start()
    end
  end)
end

if global_state.bridge then
  -- Start-up cost: a bridge exists here only after the plugin was reloaded; `control` replaces it.
  require('mcp-tools.bridge.control')
end

setmetatable(M, {
  __index = function(_, key)
    return require('mcp-tools.bridge.' .. (vim.list_contains(CONTROL, key) and 'control' or 'current'))[key]
  end,
})

return M
