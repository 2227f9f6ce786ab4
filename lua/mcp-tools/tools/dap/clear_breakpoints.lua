--- Takes all breakpoints away.

local breakpoints = require('mcp-tools.editor.dap.breakpoints')

return {
  name = 'dap_clear_breakpoints',
  description = 'Removes all breakpoints, those of the person too, also from the running program. Says how many.',
  annotations = { read_only = false, destructive = true, idempotent = true },
  needs_approval = 'it removes all breakpoints, yours too',
  preview = function()
    return 'All breakpoints are removed.'
  end,
  run = function(ctx)
    local answer, err = breakpoints.clear(ctx)
    if not answer then
      return ctx(nil, err)
    end
    return answer
  end,
}
