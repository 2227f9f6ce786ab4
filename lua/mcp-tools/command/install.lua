---@type mcp-tools.Subcommand
return {
  description = 'build or renew the Python environment of the bridge (downloads packages)',
  run = function()
    require('mcp-tools.bridge').install()
  end,
}
