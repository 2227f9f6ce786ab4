--- Returns the call stack of a thread.

local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')

return sessions.tool(sessions.stopped, {
  name = 'dap_stacktrace',
  title = 'Call stack',
  description = 'Returns the call stack of a stopped thread, innermost frame first: id (for dap_scopes, dap_variables'
    .. ' and dap_evaluate), name, path, line, column.',
  args = {
    thread_id = { type = 'integer', description = 'Default: the stopped thread' },
    levels = { type = 'integer', description = 'Maximum number of frames', default = 20, minimum = 1, maximum = 500 },
    timeout_ms = { type = 'integer', description = 'Timeout in ms', default = 5000, minimum = 1, maximum = 60000 },
  },
  annotations = { read_only = true },
  run = function(ctx, entry, args)
    local thread = args.thread_id or entry.stop.thread_id
    local frames, total = stop.stack(ctx, entry, thread, args.levels, args.timeout_ms)
    if not frames then
      return nil, total
    end
    return {
      thread_id = thread,
      total_frames = total,
      stack_frames = stop.shown(frames, args.levels, ctx.root),
    }
  end,
})
