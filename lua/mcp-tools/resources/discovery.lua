--- Resource: registered tools, resources and prompts, where they come from, and what failed to load.

local mcp_tools = require('mcp-tools')

return {
  name = 'discovery',
  uri = 'nvim://discovery',
  title = 'Registered definitions',
  description = 'All registered tools, resources and prompts with their sources, files of other plugins that define'
    .. ' tools, what could not be loaded and why, and the age of this information.',
  mime_type = 'application/json',
  tags = { 'editor' },
  read = function(ctx)
    local found = mcp_tools.report()
    for i, failure in ipairs(found.failures) do
      -- Without the traceback, which is in the log.
      found.failures[i] = { source = failure.source, error = tostring(failure.error):match('[^\n]*') }
    end
    for _, source in ipairs(found.sources) do
      source.failures = nil -- they are part of `failures`
    end
    found.no_bundled_tools, found.tool_prefix = nil, nil
    ctx(found)
  end,
  watch = mcp_tools.on_change,
}
