--- A stopped program, all that there is to see of it.

local select = require('mcp-tools.editor.dap.select')
local snapshot = require('mcp-tools.editor.dap.snapshot')

return {
  name = 'dap_snapshot',
  description = 'All of a stopped program in one answer: reason, place, lines around it, stack with ids, all locals'
    .. ' with values. The answers of dap_run and the steps tell only what is new.',
  args = {
    context_lines = { type = 'integer', description = 'Before and after it', default = 5, minimum = 0, maximum = 100 },
    levels = { type = 'integer', description = 'At most so many frames', default = 10, minimum = 1, maximum = 100 },
    max_locals = { type = 'integer', description = 'At most so many', default = 50, minimum = 1, maximum = 500 },
    max_chars = { type = 'integer', description = 'Of each value', default = 200, minimum = 1, maximum = 20000 },
    session_id = select.ARG,
  },
  annotations = { read_only = true },
  run = function(ctx, args)
    local entry, err = select.stopped(args)
    if not entry then
      return ctx(nil, err)
    end
    return snapshot.snapshot(ctx, entry, args)
  end,
}
