--- Shows the program under the debugger, and evaluates expressions in it.

local errors = require('mcp-tools.errors')
local launch = require('mcp-tools.editor.dap.launch')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local output = require('mcp-tools.editor.dap.output')
local request = require('mcp-tools.editor.dap.request')
local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')
local variables = require('mcp-tools.editor.dap.variables')

--- Lines before and after the stopped one; maximum number of frames, locals, threads, and characters of a value.
local AROUND, LEVELS, LOCALS, THREADS, MAX_VALUE = 5, 20, 50, 20, 200
--- Maximum size of output, in characters.
local MAX_OUTPUT = 32 * 1024

--- Returns all sessions as lines.
---@param ctx mcp-tools.Ctx
---@return string[]
local function all_sessions(ctx)
  local focused = nvim_dap.focused()
  return vim.tbl_map(function(entry)
    local frame = entry.stop and stop.frame(ctx, entry)
    return ('%d %s (%s): %s%s%s'):format(
      entry.id,
      entry.name,
      entry.type,
      entry.ended and 'ended' or entry.stop and 'stopped' or 'running',
      frame and ' in ' .. stop.named(frame, ctx.root) or '',
      focused and focused.id == entry.id and ', focused' or ''
    )
  end, sessions.all())
end

--- Returns the threads as lines, if there are several.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@return string[]?
local function threads(ctx, entry)
  local body = request.send(ctx, entry, 'threads')
  local list = body and body.threads or {}
  local lines = {}
  for i = 1, math.min(#list, THREADS) do
    local stopped = entry.stop and entry.stop.thread_id == list[i].id
    lines[i] = ('%s %s%s'):format(
      list[i].id,
      variables.text(tostring(list[i].name), 80),
      stopped and ' (stopped)' or ''
    )
  end
  return #list > 1 and lines or nil
end

--- Returns the stopped frame with a number, 0 for the innermost.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param args { frame: integer?, thread_id: integer? }
---@return table frame
---@return table[] frames the whole stack
---@return integer? total
local function frame_of(ctx, entry, args)
  local frames, total = errors.unwrap(stop.stack(ctx, entry, args.thread_id or entry.stop.thread_id, LEVELS))
  local number = args.frame or 0
  if not frames[number + 1] then
    local text = ('frame: there is no frame %d; the stack has %d'):format(number, #frames)
    error(errors.new('validation_error', text), 0)
  end
  return frames[number + 1], frames, total --[[@as integer]]
end

--- Adds place, source, stack and locals of a stopped program.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param args table
---@param answer table
local function add_stop(ctx, entry, args, answer)
  local frame, frames, total = frame_of(ctx, entry, args)
  answer.at = stop.named(frame, ctx.root)
  if args.expressions then
    answer.values = stop.evaluate(ctx, entry, args.expressions, frame.id)
    return
  end
  answer.code, answer.code_withheld = stop.code(ctx, frame, AROUND)
  answer.stack = {}
  for i = 1, math.min(#frames, LEVELS) do
    answer.stack[i] = ('%d %s'):format(i - 1, stop.named(frames[i], ctx.root))
  end
  answer.more_frames = total and total > #answer.stack and total - #answer.stack or nil
  local locals = errors.unwrap(variables.locals(ctx, entry, frame.id))
  answer.locals, answer.more_locals = variables.list(ctx, locals, LOCALS, MAX_VALUE)
  answer.threads = threads(ctx, entry)
end

--- Returns the answer when no program is under the debugger.
---@param ctx mcp-tools.Ctx
---@return table
local function idle(ctx)
  local dap, missing = nvim_dap.get()
  if not dap then
    return { status = 'none', message = assert(missing).message }
  end
  local all, withheld = launch.all(ctx.root)
  local adapters = vim.tbl_keys(dap.adapters)
  table.sort(adapters)
  return {
    status = 'none',
    message = 'no program is under the debugger; debug_run starts one',
    configurations = launch.names(all),
    adapters = adapters,
    withheld = withheld and ('%s: %s'):format(launch.LAUNCH_JSON, withheld) or nil,
  }
end

--- Returns the last lines of output as text.
---@param entry mcp-tools.dap.Entry
---@param count integer
---@return string? text
---@return integer? before number of earlier lines
local function last_output(entry, count)
  local lines = entry.output:after(entry.output.count - count)
  local texts = {}
  for i, line in ipairs(lines) do
    texts[i] = line.text
  end
  local before = entry.output.count - #lines
  return #lines > 0 and variables.text(table.concat(texts, '\n'), MAX_OUTPUT) or nil, before > 0 and before or nil
end

--- Maps the arguments of guill/mcp-tools.nvim's tools. Ids of frames and variables are not in answers any more.
---@param args table
---@return table
local function old(args)
  return {
    thread_id = args.thread_id,
    expressions = args.expression and { args.expression } or nil,
    output = args.lines,
    session_id = args.session_id,
  }
end

return {
  name = 'debug_inspect',
  title = 'Inspect the program',
  description = 'Returns local variables, call stack, threads and output of the program under the debugger, or the'
    .. ' values of expressions in it. Without a program, it lists the launch configurations.',
  search_hint = 'debugger, evaluate, watch, variables, stack trace, set a variable',
  args = {
    expressions = {
      type = 'array',
      items = { type = 'string', minLength = 1 },
      description = 'Such as `order.total` or `count = 3`; default: local variables',
    },
    frame = { type = 'integer', description = 'Frame number; 0 is the innermost', default = 0, minimum = 0 },
    output = {
      type = 'integer',
      description = 'Maximum number of lines of output',
      default = 20,
      minimum = 1,
      maximum = output.MAX_LINES,
      hidden = true,
    },
    thread_id = { type = 'integer', description = 'Thread; default: the stopped one', hidden = true },
    session_id = sessions.ARG,
  },
  aliases = {
    dap_status = old,
    dap_evaluate = old,
    dap_stacktrace = old,
    dap_scopes = old,
    dap_variables = old,
    dap_threads = old,
    dap_current_location = old,
    dap_program_output = old,
  },
  annotations = { read_only = false, destructive = true, open_world = true },
  recommended = true,
  always_ignores = { 'output' },
  short_lived = { 'thread_id', 'session_id' },
  needs_approval = function(args)
    return args.expressions ~= nil and 'it runs expressions in the program under the debugger'
  end,
  preview = function(args)
    local entry, err = sessions.stopped(args)
    return entry and table.concat(args.expressions or {}, '\n'), err
  end,
  run = function(ctx, args)
    local entry, err = sessions.any(args)
    if entry and args.expressions then
      entry, err = sessions.stopped(args)
    end
    if not entry then
      if err and err.code == 'not_found' and not args.session_id and not args.expressions then
        return idle(ctx)
      end
      return nil, err
    end
    local state, which = sessions.state(entry)
    which = entry.stop and entry or which
    local answer = { status = state, exit_code = which.exit_code }
    variables.refresh(ctx)
    if which.stop then
      answer.reason = which.stop.reason
      add_stop(ctx, which, args, answer)
    end
    if not args.expressions then
      answer.output, answer.output_left_out = last_output(which, args.output)
      which.output.reported = which.output.count
    end
    answer.sessions = #sessions.all() > 1 and all_sessions(ctx) or nil
    return answer
  end,
  render = function(answer)
    if answer.status ~= 'none' then
      return stop.render(answer)
    end
    local rows = { answer.message }
    if answer.configurations then
      table.insert(rows, 'launch configurations: ' .. answer.configurations)
      table.insert(rows, 'adapters: ' .. (#answer.adapters > 0 and table.concat(answer.adapters, ', ') or 'none'))
    end
    table.insert(rows, answer.withheld)
    return table.concat(rows, '\n')
  end,
}
