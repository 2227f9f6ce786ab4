--- Lists and sets the exceptions at which the program stops.

local errors = require('mcp-tools.errors')
local request = require('mcp-tools.editor.dap.request')
local sessions = require('mcp-tools.editor.dap.sessions')

--- Returns the exception filters of an adapter, and sets the active ones if they are given.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param wanted string[]?
---@return table? answer
---@return mcp-tools.Error? err
local function exceptions(ctx, entry, wanted)
  local available = (entry.session.capabilities or {}).exceptionBreakpointFilters or {}
  local names = vim.tbl_map(function(filter)
    return filter.filter
  end, available)
  for _, name in ipairs(wanted or {}) do
    if not vim.list_contains(names, name) then
      local text = "filters: this debug adapter has no '%s' (it has: %s)"
      return nil, errors.new('validation_error', text:format(name, #names > 0 and table.concat(names, ', ') or 'none'))
    end
  end
  if wanted then
    entry.filters_sent = true -- the answer must not send earlier filters again
    local body, err = request.send(ctx, entry, 'setExceptionBreakpoints', { filters = wanted })
    if not body then
      return nil, err
    end
    for _, each in ipairs(sessions.family(entry.root)) do
      each.filters = wanted
    end
  end
  return {
    filters = vim.tbl_map(function(filter)
      local active = filter.default == true
      if entry.filters then
        active = vim.list_contains(entry.filters, filter.filter)
      end
      return { filter = filter.filter, label = filter.label, active = active }
    end, available),
  }
end

return sessions.tool(sessions.active, {
  name = 'dap_exceptions',
  title = 'Exception breakpoints',
  description = 'Lists the exception filters of the adapter and which are active. With filters, sets those for this'
    .. ' session; [] turns all off. To set them from the start, use exception_filters of dap_run.',
  args = { filters = { type = 'array', items = { type = 'string' }, description = 'Filters to activate' } },
  annotations = { read_only = false, destructive = false, idempotent = true },
  needs_approval = function(args)
    return args.filters ~= nil and 'it changes at which exceptions the program stops'
  end,
  preview = function(args)
    return 'Stops at: ' .. (args.filters and table.concat(args.filters, ', ') or 'as now')
  end,
  run = function(ctx, entry, args)
    return exceptions(ctx, entry, args.filters)
  end,
})
