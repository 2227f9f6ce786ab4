---@type mcp-tools.Subcommand
return {
  description = 'start the bridge',
  run = function()
    local bridge = require('mcp-tools.bridge')
    local port = bridge.get_port()
    if port then
      require('mcp-tools.notify').info(('the bridge runs already, on port %d'):format(port))
    else
      bridge.start({ announce = true })
    end
  end,
}
