--- Evaluates an expression in the stopped program.

local evaluate = require('mcp-tools.editor.dap.evaluate')
local sessions = require('mcp-tools.editor.dap.sessions')

return sessions.tool(sessions.stopped, {
  name = 'dap_evaluate',
  title = 'Evaluate an expression',
  description = 'Evaluates an expression in the stopped program: result (cut at max_chars), type, variables_reference'
    .. ' if it has contents, and printed output.',
  args = {
    expression = { type = 'string', description = 'In the language of the program', required = true, minLength = 1 },
    frame_id = { type = 'integer', description = 'Frame id from dap_stacktrace; default: the stopped frame' },
    context = {
      type = 'string',
      description = 'repl, watch, hover or another context of the adapter; repl may run statements',
      default = 'repl',
    },
    max_chars = { type = 'integer', description = 'Length of result', default = 2000, minimum = 1, maximum = 100000 },
    timeout_ms = { type = 'integer', description = 'Timeout in ms', default = 5000, minimum = 1, maximum = 60000 },
  },
  annotations = { read_only = false, destructive = true, open_world = true },
  always_for = { 'expression', 'context' },
  needs_approval = 'it runs an expression in the program under the debugger',
  preview = function(args)
    return args.expression
  end,
  run = evaluate.run,
})
