--- Returns the whole state of a stopped program: place, code, stack and locals.

local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')
local variables = require('mcp-tools.editor.dap.variables')

return sessions.tool(sessions.stopped, {
  name = 'dap_snapshot',
  title = 'State of the stopped program',
  description = 'Returns the whole state of a stopped program: reason, place, code, stack with ids, all locals with'
    .. ' values. dap_run and the steps only return what has changed.',
  args = {
    context_lines = { type = 'integer', description = 'Surrounding lines', default = 5, minimum = 0, maximum = 100 },
    levels = { type = 'integer', description = 'Maximum number of frames', default = 10, minimum = 1, maximum = 100 },
    max_locals = { type = 'integer', description = 'Number of locals', default = 50, minimum = 1, maximum = 500 },
    max_chars = { type = 'integer', description = 'Length of each value', default = 200, minimum = 1, maximum = 20000 },
  },
  annotations = { read_only = true },
  run = function(ctx, entry, args)
    local answer = { session_id = entry.id, status = 'stopped', reason = entry.stop.reason }
    answer.thread_id = entry.stop.thread_id
    local frames, total = stop.stack(ctx, entry, entry.stop.thread_id, args.levels)
    if not frames or not frames[1] then
      answer.at = 'nowhere that the adapter tells'
      return answer
    end
    local frame = frames[1]
    answer.at = stop.named(frame, ctx.root)
    answer.code, answer.code_withheld = stop.code(ctx, frame, args.context_lines)
    answer.frames, answer.total_frames = stop.shown(frames, args.levels, ctx.root), total
    local locals = variables.page(ctx, entry, {
      frame_id = frame.id,
      start = 0,
      count = args.max_locals,
      max_chars = args.max_chars,
    })
    if locals then
      answer.locals, answer.total_locals = locals.variables, locals.total
      answer.values_left_out = locals.values_left_out
    end
    return answer
  end,
})
