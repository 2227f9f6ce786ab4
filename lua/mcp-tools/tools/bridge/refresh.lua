--- Loads tools of plugins and of mounted servers again.

local mcp_tools = require('mcp-tools')

return {
  name = 'bridge_refresh',
  title = 'Refresh the tools',
  description = 'Scans for tools of plugins, Python tools and mounted servers, and loads those that are new or have'
    .. ' changed. Returns the files that were found, the tools of each, and what could not be loaded and why. The list'
    .. ' of tools may change.',
  args = {
    source = {
      type = 'string',
      enum = { 'ext', 'python', 'mounts' },
      description = 'Source to scan (default: all)',
    },
  },
  annotations = { read_only = false, destructive = false, idempotent = true, open_world = false },
  needs_approval = 'it runs files of plugins that are new or have changed',
  execute = function(ctx, args)
    mcp_tools.refresh(args.source, function()
      local sources = vim.tbl_filter(function(source)
        return args.source == nil or source.name == args.source
      end, mcp_tools.report().sources)
      ctx({ sources = sources })
    end)
  end,
}
