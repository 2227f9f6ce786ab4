--- Removes all breakpoints.

local breakpoints = require('mcp-tools.editor.dap.breakpoints')

return {
  name = 'dap_clear_breakpoints',
  title = 'Remove all breakpoints',
  description = "Removes all breakpoints, including the user's, also from the running program. Returns how many were"
    .. ' removed.',
  annotations = { read_only = false, destructive = true, idempotent = true },
  needs_approval = function()
    return breakpoints.count() > 0 and 'it removes all breakpoints, yours too'
  end,
  preview = function()
    return ('%d breakpoints are removed.'):format(breakpoints.count())
  end,
  run = function(ctx)
    return breakpoints.clear(ctx)
  end,
}
