-- Receives what the rest of the plugin wants of the bridge. Sends it to control.lua, which is read at the first use:
-- `setup()` comes here in the start-up of the editor and must cost nothing.
-- Does not know about how anything works.

---@class mcp-tools.bridge: mcp-tools.bridge.Control
local M = {}

--- Starts the bridge when this editor should have one: once there is a UI, not in short-lived editors.
function M.autostart()
  require('mcp-tools.bridge.autostart').run(function()
    if not M.is_wanted() then
      M.start()
    end
  end)
end

return setmetatable(M, {
  __index = function(_, key)
    return require('mcp-tools.bridge.control')[key]
  end,
})
