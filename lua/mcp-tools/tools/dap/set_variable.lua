--- Changes a variable of the stopped program.

local evaluate = require('mcp-tools.editor.dap.evaluate')
local sessions = require('mcp-tools.editor.dap.sessions')

return sessions.tool(sessions.stopped, {
  name = 'dap_set_variable',
  title = 'Set a variable',
  description = 'Changes a variable of the stopped program: a local, one of a variables_reference, or what an'
    .. ' expression names. Returns the new value.',
  args = {
    name = { type = 'string', description = 'Name, or an expression such as self.x', required = true, minLength = 1 },
    value = { type = 'string', description = 'Expression in the language of the program', required = true },
    variables_reference = { type = 'integer', description = 'Its container; default: the locals', minimum = 1 },
    frame_id = { type = 'integer', description = 'Frame id from dap_stacktrace; default: the stopped frame' },
  },
  annotations = { read_only = false, destructive = true, open_world = true },
  always_for = { 'name', 'value' },
  needs_approval = 'it changes a variable of the program under the debugger',
  preview = function(args)
    return ('%s = %s'):format(args.name, args.value)
  end,
  run = evaluate.set,
})
