--- Steps, continues, pauses, restarts or ends the program under the debugger.

local breakpoints = require('mcp-tools.editor.dap.breakpoints')
local control = require('mcp-tools.editor.dap.control')
local errors = require('mcp-tools.errors')
local launch = require('mcp-tools.editor.dap.launch')
local log = require('mcp-tools.log')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local request = require('mcp-tools.editor.dap.request')
local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')

local api = vim.api

--- Returns the line to which a call wants to run.
---@param entry mcp-tools.dap.Entry stopped
---@param args { path: string?, line: integer? }
---@return mcp-tools.dap.Point
local function target_of(entry, args)
  local frame = (entry.stop.frames or {})[1]
  local path = args.path or frame and (frame.source or {}).path
  if not args.line or not path then
    local text = ("%s: required with how='to_line'"):format(args.line and 'path' or 'line')
    error(errors.new('validation_error', text), 0)
  end
  local target = { path = path, line = args.line }
  errors.check(breakpoints.refusal({ target }))
  return target
end

--- Runs a stopped program to a line. Other breakpoints stay active; the one for this exists only in the adapter, until
--- the next stop.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry stopped
---@param args table
---@return table? answer
---@return mcp-tools.Error? err
local function run_to(ctx, entry, args)
  local loaded = errors.unwrap(breakpoints.load(ctx, { target_of(entry, args) }))
  local bufnr = loaded[1].bufnr --[[@as integer]]
  local path = api.nvim_buf_get_name(bufnr)
  local points = { { line = args.line } }
  for _, point in ipairs(nvim_dap.breakpoints(bufnr)[bufnr] or {}) do
    if point.line ~= args.line then
      table.insert(points, {
        line = point.line,
        condition = point.condition,
        hitCondition = point.hitCondition,
        logMessage = point.logMessage,
      })
    end
  end
  local unwatch
  local restored = false
  local function restore()
    if restored then
      return
    end
    restored = true
    if unwatch then
      unwatch()
    end
    vim.schedule(function() -- outside the tool's coroutine, in which nvim-dap would yield
      if not entry.ended and not entry.session.closed and api.nvim_buf_is_valid(bufnr) then
        local own = { [bufnr] = nvim_dap.breakpoints(bufnr)[bufnr] or {} }
        log.guard('breakpoints of a debug session', entry.session.set_breakpoints, entry.session, own, function() end)
      end
    end)
  end
  ctx:on_cancel(restore)
  local body, fault = request.send(ctx, entry, 'setBreakpoints', {
    source = { path = path, name = vim.fs.basename(path) },
    breakpoints = points,
    sourceModified = false,
  })
  if not body then
    restore() -- the adapter may have set them and answer late
    return nil, fault
  end
  local target = (body.breakpoints or {})[1] or {}
  if target.verified == false then
    restore()
    local why = target.message and ': ' .. target.message or ''
    return nil, errors.new('tool_error', ('line: the program cannot stop in line %d%s'):format(args.line, why))
  end
  local ok, refused = control.resume(ctx, entry, 'continue')
  if not ok then
    restore()
    return nil, refused
  end
  unwatch = sessions.on_change(function()
    if sessions.state(entry) ~= 'running' then
      restore()
    end
  end)
  local answer = control.wait(ctx, entry, args)
  if answer.status == 'stopped' then
    local _, which = sessions.state(entry)
    local frame = stop.frame(ctx, which)
    answer.reached = frame ~= nil
      and frame.line == (target.line or args.line)
      and vim.uv.fs_realpath((frame.source or {}).path or '') == vim.uv.fs_realpath(path)
  end
  return answer
end

--- Requests of the debug adapter protocol that resume a stopped program.
local COMMANDS = { continue = 'continue', over = 'next', into = 'stepIn', out = 'stepOut' }

---@class mcp-tools.debug.How
---@field find fun(args: table): mcp-tools.dap.Entry?, mcp-tools.Error?
---@field reason string? why it needs approval
---@field run? fun(ctx: mcp-tools.Ctx, entry: mcp-tools.dap.Entry, args: table): table|true|nil, mcp-tools.Error? an
---answer, or true: wait for the stop

---@type table<string, mcp-tools.debug.How>
local HOW = {
  to_line = {
    find = sessions.stopped,
    reason = 'it lets the program under the debugger run on',
    run = run_to,
  },
  pause = {
    find = sessions.active,
    reason = 'it pauses the program under the debugger',
    run = function(ctx, entry)
      if sessions.state(entry) == 'stopped' then
        return true
      end
      return control.pause(ctx, entry)
    end,
  },
  wait = {
    find = sessions.any,
    run = function()
      return true
    end,
  },
  restart = {
    find = sessions.any,
    reason = 'it ends the program under the debugger and runs it again',
    run = launch.restart,
  },
  stop = {
    find = sessions.active,
    reason = 'it ends the program under the debugger',
    run = control.terminate,
  },
  detach = {
    find = sessions.active,
    reason = 'it lets the program continue without the debugger',
    run = function(ctx, entry)
      return control.disconnect(ctx, sessions.root(entry), false)
    end,
  },
}
for how, request_name in pairs(COMMANDS) do
  HOW[how] = {
    find = sessions.stopped,
    reason = 'it lets the program under the debugger run on',
    run = function(ctx, entry)
      return control.resume(ctx, entry, request_name)
    end,
  }
end

--- Returns the function that maps the arguments of one of guill/mcp-tools.nvim's tools.
---@param how string
---@return fun(args: table): table
local function alias(how)
  return function(args)
    args.how = how
    return control.old_wait(args)
  end
end

return {
  name = 'debug_step',
  title = 'Step or continue',
  description = 'Resumes, steps, pauses, restarts or ends the program under the debugger, and returns the next stop.',
  search_hint = 'debugger, step over, step into, continue, terminate, pause',
  args = {
    how = {
      type = 'string',
      enum = { 'continue', 'over', 'into', 'out', 'to_line', 'pause', 'wait', 'restart', 'stop', 'detach' },
      description = 'What to do',
      required = true,
    },
    path = { type = 'string', description = 'File for `to_line`' },
    line = { type = 'integer', description = 'Line for `to_line`', minimum = 1 },
    expressions = control.ARGS.expressions,
    timeout_ms = control.ARGS.timeout_ms,
    session_id = sessions.ARG,
  },
  aliases = {
    dap_continue = alias('continue'),
    dap_step_over = alias('over'),
    dap_step_into = alias('into'),
    dap_step_out = alias('out'),
    dap_run_to = alias('to_line'),
    dap_wait_until_paused = alias('wait'),
    dap_terminate = alias('stop'),
    dap_disconnect = function(args)
      args.how = args.terminate_debuggee == false and 'detach' or 'stop'
      args.terminate_debuggee = nil
      return args
    end,
  },
  annotations = { read_only = false, destructive = true, open_world = true },
  recommended = true,
  timeout = control.TOOL_TIMEOUT,
  always_ignores = { 'timeout_ms' },
  short_lived = { 'session_id' },
  needs_approval = function(args)
    return HOW[args.how].reason or args.expressions ~= nil and 'it runs expressions in the program under the debugger'
  end,
  preview = function(args)
    local how = HOW[args.how]
    local entry = errors.unwrap(how.find(args))
    local lines = { args.how }
    if args.how == 'to_line' then
      target_of(entry, args) -- throws if it cannot
      lines = { ('The stopped program runs to line %d.'):format(args.line) }
    elseif args.how == 'restart' then
      lines = { vim.inspect(launch.config_of(entry)) }
    end
    for _, expression in ipairs(args.expressions or {}) do
      table.insert(lines, 'Evaluates: ' .. expression)
    end
    return table.concat(lines, '\n')
  end,
  run = function(ctx, args)
    local how = HOW[args.how]
    local entry = errors.unwrap(how.find(args))
    local answer, fault = how.run(ctx, entry, args)
    if answer == true then
      return control.wait(ctx, entry, args)
    end
    return answer, fault
  end,
  render = stop.render,
}
