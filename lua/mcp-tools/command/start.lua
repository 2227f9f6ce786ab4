local bridge = require('mcp-tools.bridge')
local notify = require('mcp-tools.notify')

---@type mcp-tools.Subcommand
return {
  description = 'start the bridge',
  run = function()
    local port = bridge.get_port()
    if port then
      notify.info(('the bridge runs already, on port %d'):format(port))
    else
      bridge.start({ announce = true })
    end
  end,
}
