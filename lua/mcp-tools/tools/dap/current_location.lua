--- Returns where the program has stopped, with the code around it.

local access = require('mcp-tools.privacy.access')
local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')

return sessions.tool(sessions.stopped, {
  name = 'dap_current_location',
  title = 'Current line of the program',
  description = 'Returns where the program has stopped: file, line, column, function_name, and the code around it.',
  args = {
    context_lines = { type = 'integer', description = 'Surrounding lines', default = 5, minimum = 0, maximum = 200 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, entry, args)
    local frame, fault = stop.frame(ctx, entry)
    if not frame then
      return nil, fault or 'the stopped thread has no frame'
    end
    local source = frame.source or {}
    local code, withheld = stop.code(ctx, frame, args.context_lines)
    return {
      location = {
        file = source.path and access.shown(source.path, ctx.root) or source.name,
        line = frame.line,
        column = frame.column,
        function_name = frame.name,
      },
      code_context = code,
      withheld = withheld,
    }
  end,
})
