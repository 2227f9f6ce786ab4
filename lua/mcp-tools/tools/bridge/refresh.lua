--- Loads tools of plugins and of mounted servers again.

local mcp_tools = require('mcp-tools')
local result = require('mcp-tools.editor.result')

return {
  name = 'bridge_refresh',
  title = 'Refresh the tools',
  description = 'Loads new and changed tools of plugins, Python tools and mounted MCP servers. Returns the tools by'
    .. ' file, and what could not be loaded and why.',
  search_hint = 'reload tools, new tool not found, MCP servers',
  args = {
    source = {
      type = 'string',
      enum = { 'ext', 'python', 'mounts' },
      description = 'Only this source',
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
  render = function(value)
    local rows = {}
    for _, source in ipairs(value.sources) do
      local count = result.count(#source.found, source.name == 'mounts' and 'server' or 'file')
      table.insert(rows, ('%s: %s, %d failed'):format(source.name, count, #source.failures))
      for _, found in ipairs(source.found) do
        table.insert(rows, ('  %s: %s'):format(found.file, table.concat(found.tools, ', ')))
      end
      for _, failure in ipairs(source.failures) do
        table.insert(rows, ('  failed: %s: %s'):format(failure.source, failure.error))
      end
    end
    return table.concat(rows, '\n')
  end,
}
