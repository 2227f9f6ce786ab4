--- Evaluates an expression in the stopped program.

local evaluate = require('mcp-tools.editor.dap.evaluate')
local sessions = require('mcp-tools.editor.dap.sessions')

return sessions.tool(sessions.stopped, {
  name = 'dap_evaluate',
  title = 'Evaluate an expression',
  description = 'Evaluates an expression in the program, in the frame where it stands: result (cut at max_chars), type,'
    .. ' variables_reference if there is more in it, and what it printed.',
  args = {
    expression = { type = 'string', description = "In the program's language", required = true, minLength = 1 },
    frame_id = { type = 'integer', description = 'Of dap_stacktrace; default: where it stands' },
    context = {
      type = 'string',
      description = 'repl, watch, hover or another that the adapter knows; repl may run statements',
      default = 'repl',
    },
    max_chars = { type = 'integer', description = 'Of the result', default = 2000, minimum = 1, maximum = 100000 },
    timeout_ms = { type = 'integer', description = 'ms', default = 5000, minimum = 1, maximum = 60000 },
  },
  annotations = { read_only = false, destructive = true, open_world = true },
  always_for = { 'expression', 'context' },
  needs_approval = 'it runs an expression in the program under the debugger',
  preview = function(args)
    return args.expression
  end,
  run = evaluate.run,
})
