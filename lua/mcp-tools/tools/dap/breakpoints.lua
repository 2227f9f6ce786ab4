--- All breakpoints, and whether they are bound.

local breakpoints = require('mcp-tools.editor.dap.breakpoints')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local sessions = require('mcp-tools.editor.dap.sessions')

return {
  name = 'dap_breakpoints',
  description = 'Lists the breakpoints, those of the person too: file, line, type, conditions, and, while a program is'
    .. ' debugged, whether each is bound (verified) and in which line.',
  args = {
    limit = { type = 'integer', description = 'At most so many', default = 100, minimum = 1, maximum = 1000 },
    offset = { type = 'integer', description = 'Breakpoints to pass over', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    if nvim_dap.loaded() then
      sessions.attach()
    end
    local all = breakpoints.list(ctx)
    local page = vim.list_slice(all, args.offset + 1, math.min(#all, args.offset + args.limit))
    local last = args.offset + #page
    return { breakpoints = page, total = #all, next_offset = last < #all and last or nil }
  end,
}
