--- `:McpTools start`: starts the bridge.

local bridge = require('mcp-tools.bridge')
local folder = require('mcp-tools.command._folder')
local notify = require('mcp-tools.notify')

---@type mcp-tools.Subcommand
return {
  usage = '[DIR]',
  description = 'start the bridge, with a folder from now on for the project that it lies in',
  run = function(rest)
    local ok, root = folder.parse(rest)
    local port = bridge.get_port()
    if ok and port then
      local advice = root and '; :McpTools restart DIR takes it to another project' or ''
      notify.info(('the bridge runs already, on port %d%s'):format(port, advice))
    elseif ok then
      bridge.start({ announce = true, root = root })
    end
  end,
  complete = folder.complete,
}
