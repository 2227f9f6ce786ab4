local bridge = require('mcp-tools.bridge')

---@type mcp-tools.Subcommand
return {
  description = 'build or renew the Python environment of the bridge (downloads packages)',
  run = function()
    bridge.install()
  end,
}
