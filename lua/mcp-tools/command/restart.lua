---@type mcp-tools.Subcommand
return {
  description = 'stop the bridge and start it on the same port and token',
  run = function()
    require('mcp-tools.bridge').restart({ announce = true })
  end,
}
