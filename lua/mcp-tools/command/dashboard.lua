--- `:McpTools dashboard`, and `:McpTools` alone: what this editor offers, who uses it, and what waits.

local bridge = require('mcp-tools.bridge')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local dashboard = require('mcp-tools.ui.dashboard')
local groups = require('mcp-tools.groups')

---@type mcp-tools.Subcommand
return {
  description = 'show the dashboard (|mcp-tools-dashboard|): bridge, clients, calls, tools and what waits for you,'
    .. ' as they are now, with keys for what can be done about them; so does |:McpTools| alone',
  run = function()
    local parts = core.get()
    dashboard.open({
      style = config.get('ui.dashboard'),
      registry = parts.registry,
      executor = parts.executor,
      gateway = parts.gateway,
      history = parts.history,
      bridge = bridge.status,
      items = groups.items,
      run = function(text)
        vim.api.nvim_cmd({ cmd = 'McpTools', args = { text } }, {})
      end,
    })
  end,
}
