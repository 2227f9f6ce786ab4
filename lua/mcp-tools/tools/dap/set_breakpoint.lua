--- Sets a breakpoint, even in a buffer without a window.

local breakpoints = require('mcp-tools.editor.dap.breakpoints')

return {
  name = 'dap_set_breakpoint',
  title = 'Set a breakpoint',
  description = 'Sets a breakpoint, or changes the one in that line. Answers with the lines around it and, when a'
    .. ' program runs, whether it was bound (verified) and where. Moves nothing of the person.',
  args = vim.tbl_extend('error', {
    line = { type = 'integer', description = '1-based line number', required = true, minimum = 1 },
    condition = { type = 'string', description = 'Stop only if this expression is true' },
    hit_condition = { type = 'string', description = 'Number of hits before it stops, such as 3' },
    log_message = { type = 'string', description = 'Print this instead of stopping; {x} is replaced by its value' },
  }, breakpoints.FILE_ARGS),
  annotations = { read_only = false, destructive = false, idempotent = true },
  always_for = { 'condition', 'hit_condition', 'log_message' }, -- the program evaluates these
  needs_approval = function(args)
    if args.condition or args.hit_condition or args.log_message then
      return 'it sets a breakpoint whose expression the program evaluates'
    end
    return 'it sets a breakpoint'
  end,
  preview = function(args)
    local err = breakpoints.refusal(args)
    if err then
      return nil, err
    end
    local lines = { ('Breakpoint in line %d'):format(args.line) }
    for _, name in ipairs({ 'condition', 'hit_condition', 'log_message' }) do
      if args[name] then
        table.insert(lines, ('%s: %s'):format(name, args[name]))
      end
    end
    return table.concat(lines, '\n')
  end,
  run = breakpoints.set,
}
