--- Removes a breakpoint.

local breakpoints = require('mcp-tools.editor.dap.breakpoints')

return {
  name = 'dap_remove_breakpoint',
  title = 'Remove a breakpoint',
  description = 'Removes the breakpoint in a line, also from the running program. Returns not_found if there is none.',
  args = vim.tbl_extend('error', {
    line = { type = 'integer', description = '1-based line number', required = true, minimum = 1 },
  }, breakpoints.FILE_ARGS),
  annotations = { read_only = false, destructive = true, idempotent = true },
  needs_approval = 'it removes a breakpoint',
  preview = function(args)
    local bufnr, err = breakpoints.find(args)
    if not bufnr then
      return nil, err
    end
    return ('The breakpoint in line %d is removed.'):format(args.line)
  end,
  run = breakpoints.remove,
}
