--- `:McpTools restart`: a new bridge on the same port.

local bridge = require('mcp-tools.bridge')
local folder = require('mcp-tools.command._folder')

---@type mcp-tools.Subcommand
return {
  usage = '[DIR]',
  description = 'stop the bridge and start it on the same port and token, or from now on for the project that '
    .. 'DIR lies in; tools written in Python start afresh',
  run = function(rest)
    local ok, root = folder.parse(rest)
    if not ok then
      return
    end
    local host = package.loaded['mcp-tools.python.host'] -- start-up cost: it has never run before it is loaded
    if host then
      host.restart()
    end
    bridge.restart({ announce = true, root = root })
  end,
  complete = folder.complete,
}
