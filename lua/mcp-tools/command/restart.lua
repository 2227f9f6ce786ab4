local bridge = require('mcp-tools.bridge')

---@type mcp-tools.Subcommand
return {
  description = 'stop the bridge and start it on the same port and token; tools written in Python start afresh',
  run = function()
    local host = package.loaded['mcp-tools.python.host'] -- start-up cost: it has never run before it is loaded
    if host then
      host.restart()
    end
    bridge.restart({ announce = true })
  end,
}
