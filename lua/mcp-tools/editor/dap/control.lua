--- Controls a debugged program: waits, continues, steps, pauses and ends it. After a timeout of a wait, the program
--- keeps running.

local await_until = require('mcp-tools.util.deadline').await_until
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local request = require('mcp-tools.editor.dap.request')
local sessions = require('mcp-tools.editor.dap.sessions')
local stop = require('mcp-tools.editor.dap.stop')

local M = {}

local MAX_WAIT = 600000
--- Timeout of tools that wait: the maximum wait, plus time for requests after it.
M.TOOL_TIMEOUT = MAX_WAIT + 30000
--- Maximum wait for an adapter to end a program, ms.
local END_MS = 3000

--- Arguments of tools that wait for a stop.
M.ARGS = {
  expressions = {
    type = 'array',
    items = { type = 'string', minLength = 1 },
    description = 'Expressions to evaluate at the stop',
  },
  timeout_ms = {
    type = 'integer',
    description = 'Maximum wait for a stop',
    default = 30000,
    minimum = 0,
    maximum = MAX_WAIT,
  },
}

--- Replaces the arguments of guill/mcp-tools.nvim for waiting.
---@param args table changed in place
---@return table args
function M.old_wait(args)
  args.timeout_ms = args.wait_until_paused == false and 0 or args.wait_timeout_ms or args.timeout_ms
  args.wait_until_paused, args.wait_timeout_ms, args.check_interval_ms = nil, nil, nil
  return args
end

--- Waits until a condition of debug sessions is true.
---@generic T
---@param ctx mcp-tools.Ctx
---@param ms integer
---@param is_true fun(): T?
---@return T? value nil: timeout
function M.await(ctx, ms, is_true)
  return await_until(ctx, ms, sessions.on_change, is_true)
end

--- Waits until a session or one of its child sessions has stopped or ended, and describes it. Evaluates expressions if
--- it has stopped.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param args { expressions: string[]?, timeout_ms: integer }
---@return table answer
function M.wait(ctx, entry, args)
  local reached = M.await(ctx, args.timeout_ms, function()
    return sessions.state(entry) ~= 'running'
  end)
  local answer = stop.describe(ctx, entry, not reached and args.timeout_ms or nil)
  if args.expressions and answer.status == 'stopped' then
    local _, which = sessions.state(entry)
    answer.values = stop.evaluate(ctx, which, args.expressions)
  end
  return answer
end

--- Resumes the stopped thread.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param command 'continue'|'next'|'stepIn'|'stepOut'
---@return boolean? ok
---@return mcp-tools.Error? err
function M.resume(ctx, entry, command)
  if not entry.stop.thread_id then
    return nil, errors.new('tool_error', 'the adapter does not report which thread has stopped')
  end
  local arguments = { threadId = entry.stop.thread_id }
  local undo = sessions.resuming(entry, arguments)
  local ok, err = request.await(ctx, entry, command, request.TIMEOUT_MS, function(done)
    nvim_dap.resume(entry.session, command, arguments, function(fault)
      if fault then
        undo()
        return done(nil, errors.new('tool_error', ('%s failed: %s'):format(command, fault)))
      end
      done(true)
    end)
  end)
  -- If the program ended before the adapter answered, it was resumed as well.
  return ok or entry.ended or nil, err
end

--- Pauses a running program.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@return boolean? ok
---@return mcp-tools.Error? err
function M.pause(ctx, entry)
  local body, err = request.send(ctx, entry, 'threads')
  local thread = body and (body.threads or {})[1]
  if not thread then
    return nil, err or errors.new('tool_error', 'the program has no thread that can be paused')
  end
  entry.resumed_by = 'tool'
  local paused, fault = request.send(ctx, entry, 'pause', { threadId = thread.id })
  return paused ~= nil or nil, fault
end

---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
local function await_end(ctx, entry)
  return M.await(ctx, END_MS, function()
    return entry.ended
  end)
end

--- Disconnects from a session. nvim-dap may raise an error if the session is ending.
---@param entry mcp-tools.dap.Entry
---@param terminate boolean also end the program
local function disconnect(entry, terminate)
  if not entry.ended and not entry.session.closed then
    local opts = { terminateDebuggee = terminate }
    log.guard('the end of a debug session', entry.session.disconnect, entry.session, opts, function() end)
  end
end

--- Disconnects from a session and waits for its end.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param terminate boolean also end the program
---@return boolean? ended
---@return mcp-tools.Error? err
function M.disconnect(ctx, entry, terminate)
  ctx:await(function(done)
    vim.schedule(function()
      disconnect(entry, terminate)
      done()
    end)
  end)
  if not await_end(ctx, entry) then
    return nil, errors.new('timeout', 'the debug adapter did not end the session')
  end
  return true
end

--- Ends a program and its child sessions: by a `terminate` request, which allows cleanup, otherwise by disconnecting.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@return boolean? ended
---@return mcp-tools.Error? err
function M.terminate(ctx, entry)
  local root = sessions.root(entry)
  if (root.session.capabilities or {}).supportsTerminateRequest then
    request.send(ctx, root, 'terminate', vim.empty_dict(), END_MS)
    if await_end(ctx, root) then
      return true
    end
  end
  return M.disconnect(ctx, root, true)
end

--- Ends a session that is no longer needed.
---@param entry mcp-tools.dap.Entry
function M.abandon(entry)
  vim.schedule(function() -- outside the tool's coroutine, in which nvim-dap would yield
    disconnect(entry, true)
  end)
end

return M
