--- Loads tools of plugins and of mounted servers again.

local mcp_tools = require('mcp-tools')

return {
  name = 'bridge_refresh',
  title = 'Refresh the tools',
  description = 'Looks again for tools that plugins ship and for mounted servers, and loads what is new or has changed.'
    .. ' Answers with the files that were found, the tools of each, and what could not be loaded and why. The list of'
    .. ' tools may be another afterwards.',
  args = {
    source = {
      type = 'string',
      enum = { 'ext', 'python', 'mounts' },
      description = 'Look only there. Default: everywhere.',
    },
  },
  annotations = { read_only = false, destructive = false, idempotent = true, open_world = false },
  needs_approval = 'it runs the files of plugins that are new or have changed',
  execute = function(ctx, args)
    mcp_tools.refresh(args.source, function()
      local sources = vim.tbl_filter(function(source)
        return args.source == nil or source.name == args.source
      end, mcp_tools.report().sources)
      ctx({ sources = sources })
    end)
  end,
}
