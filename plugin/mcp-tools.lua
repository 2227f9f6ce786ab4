-- The :McpTools command. Loads nothing else: the plugin is read when the command, `setup()` or another plugin asks.

if vim.g.loaded_mcp_tools then
  return
end
vim.g.loaded_mcp_tools = true

vim.api.nvim_create_user_command('McpTools', function(args)
  require('mcp-tools.command').run(args)
end, {
  nargs = '*',
  desc = 'MCP tools of this editor',
  complete = function(lead, line, position)
    return require('mcp-tools.command').complete(lead, line, position)
  end,
})
