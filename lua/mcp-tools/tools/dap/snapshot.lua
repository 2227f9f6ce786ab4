--- Returns the whole state of a stopped program: place, code, stack and locals.

local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')
local variables = require('mcp-tools.editor.dap.variables')

return {
  name = 'dap_snapshot',
  title = 'State of the stopped program',
  description = 'All of a stopped program in one answer: reason, place, lines around it, stack with ids, all locals'
    .. ' with values. The answers of dap_run and the steps tell only what is new.',
  args = {
    context_lines = { type = 'integer', description = 'Before and after it', default = 5, minimum = 0, maximum = 100 },
    levels = { type = 'integer', description = 'Maximum number of frames', default = 10, minimum = 1, maximum = 100 },
    max_locals = {
      type = 'integer',
      description = 'Maximum number of variables',
      default = 50,
      minimum = 1,
      maximum = 500,
    },
    max_chars = { type = 'integer', description = 'Of each value', default = 200, minimum = 1, maximum = 20000 },
    session_id = sessions.ARG,
  },
  annotations = { read_only = true },
  run = sessions.run(sessions.stopped, function(ctx, entry, args)
    local answer = { session_id = entry.id, status = 'stopped', reason = entry.stop.reason }
    answer.thread_id = entry.stop.thread_id
    local frames, total = stop.stack(ctx, entry, entry.stop.thread_id, args.levels)
    if not frames or not frames[1] then
      answer.at = 'nowhere that the adapter tells'
      return answer
    end
    local frame = frames[1]
    answer.at = stop.named(frame, ctx.root)
    local path = (frame.source or {}).path
    if path then
      answer.code, answer.code_withheld = stop.code(ctx, path, frame.line, args.context_lines)
    end
    answer.frames = vim.tbl_map(function(each)
      return stop.frame_shown(each, ctx.root)
    end, vim.list_slice(frames, 1, args.levels))
    answer.total_frames = total
    local locals = variables.page(ctx, entry, {
      frame_id = frame.id,
      start = 0,
      count = args.max_locals,
      names_only = false,
      max_chars = args.max_chars,
      timeout_ms = 5000,
    })
    if locals then
      answer.locals, answer.total_locals = locals.variables, locals.total
      answer.values_left_out = locals.values_left_out
    end
    return answer
  end),
}
