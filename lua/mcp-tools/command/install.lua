--- `:McpTools install`: builds the Python environment.

local bridge = require('mcp-tools.bridge')

---@type mcp-tools.Subcommand
return {
  description = 'build or renew the Python environment of the bridge (downloads packages); with ! build it anew',
  bang = true,
  run = function(_, bang)
    bridge.install({ force = bang })
  end,
}
