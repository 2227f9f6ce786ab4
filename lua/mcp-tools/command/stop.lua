---@type mcp-tools.Subcommand
return {
  description = 'stop the bridge',
  run = function()
    require('mcp-tools.bridge').stop(function()
      require('mcp-tools.notify').info('the bridge has stopped')
    end)
  end,
}
