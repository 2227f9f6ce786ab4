--- Which exceptions stop the program.

local evaluate = require('mcp-tools.editor.dap.evaluate')
local select = require('mcp-tools.editor.dap.select')

return {
  name = 'dap_exceptions',
  description = 'Lists the filters for exceptions that the adapter has, and which are active. With filters it sets them'
    .. ' for this session; [] stops at none. From the beginning: exception_filters of dap_run.',
  args = {
    filters = { type = 'array', items = { type = 'string' }, description = 'Names of filters to be active' },
    session_id = select.ARG,
  },
  annotations = { read_only = false, destructive = false, idempotent = true },
  needs_approval = function(args)
    return args.filters ~= nil and 'it changes at which exceptions the program stops'
  end,
  preview = select.preview(select.active, function(args)
    return 'Stops at: ' .. (args.filters and table.concat(args.filters, ', ') or 'as now')
  end),
  run = function(ctx, args)
    local entry, err = select.active(args)
    if not entry then
      return ctx(nil, err)
    end
    return ctx(evaluate.exceptions(ctx, entry, args.filters))
  end,
}
