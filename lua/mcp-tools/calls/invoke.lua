--- Runs a tool's handler. Only this file knows the styles `execute` and `run`.

local Ctx = require('mcp-tools.calls.ctx')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

local M = {}

--- Returns the first line of an error's message, without file and line number.
---@param value any
---@return string
local function first_line(value)
  local text = value
  if type(value) == 'table' and type(rawget(value, 'message')) == 'string' then
    text = rawget(value, 'message')
  elseif type(value) ~= 'string' then
    text = vim.inspect(value, { newline = ' ', indent = '' })
  end
  return (vim.split(text, '\n', { plain = true })[1]:gsub('^[^:]*:%d+: ', ''))
end

---@param value any the thrown value
---@return { value: any, trace: string }
local function trace(value)
  return { value = value, trace = debug.traceback(type(value) == 'string' and value or vim.inspect(value), 2) }
end

--- Converts a result for the caller. Reading it may throw, because of metatables.
---@param call mcp-tools.Call
---@param result any
---@return mcp-tools.Payload? payload
---@return mcp-tools.Error? err
local function payload_of(call, result)
  local ok, payload, err = xpcall(call.kind.payload, trace, result, call.definition, call.max_result)
  if ok then
    return payload, err
  end
  log.error('call %s (%s): the result cannot be read: %s', call.id, call.name, payload.trace)
  call.trace = payload.trace
  local text = 'Tool execution error: the result cannot be read: '
  return nil, errors.new('execution_error', text .. first_line(payload.value))
end

--- Fails a call. The message is cut to the maximum size of a result.
---@param call mcp-tools.Call
---@param err mcp-tools.Error
local function fail(call, err)
  err.message = utf8.cut(err.message, call.max_result)
  call:finish('fail', { error = err })
end

--- Size in bytes above which only the text of a result is kept, not its value as well.
local LARGE = 64 * 1024

--- Ends a call with the result or error of its tool.
---@param call mcp-tools.Call
---@param result any
---@param err mcp-tools.Error?
local function settle(call, result, err)
  if call:ended() then
    log.warn('call %s (%s): is already %s; its answer was dropped', call.id, call.name, call.state)
    return
  end
  if not err then
    local payload
    payload, err = payload_of(call, result)
    local size = payload and payload.text and #payload.text or 0
    if size > LARGE and call.capacity_error then
      err = call.capacity_error(size)
      result = nil
    elseif payload and payload.raw then
      result = nil -- decoded from the text when it is needed
    end
    if payload and not err then
      call:finish('finish', { value = result, payload = payload })
      return
    end
  end
  fail(call, err)
end

--- Fails a call whose tool threw. The client gets the message; the log and `:McpTools call` get the traceback.
---@param call mcp-tools.Call
---@param thrown { value: any, trace: string }
local function threw(call, thrown)
  log.error('call %s (%s) threw: %s', call.id, call.name, thrown.trace)
  call.trace = thrown.trace
  if call:ended() then
    return
  end
  local read, coded = pcall(errors.is, thrown.value)
  local err = read and coded and Ctx.tool_error(thrown.value)
  fail(call, err or errors.new('execution_error', 'Tool execution error: ' .. first_line(thrown.value)))
end

--- Prepares a hint for an `execute` handler that returned something. Returned values are ignored: many handlers
--- return the handle of a job. Only a timeout shows that `ctx(result)` was meant, so the hint is reported then.
---@param call mcp-tools.Call
---@param value any
---@param message any second value, if the first is nil
local function hint_at_returned(call, value, message)
  local text = '`execute` returned %s, which is ignored; results are passed to `ctx(result)`, or returned by `run`'
  if value == nil then
    text = '`execute` returned nil and %s, which is ignored; errors are passed to `ctx:fail(message)`'
  end
  call.hint = text:format('a ' .. type(value == nil and message or value))
  call:on_end(function()
    if call.state == 'timed_out' then
      notify.once('unanswered ' .. call.name, 'warn', ("Tool '%s': %s"):format(call.name, call.hint))
    end
  end)
end

--- Runs a `run` tool's coroutine from one waiting point to the next.
---@param call mcp-tools.Call
---@param ctx mcp-tools.Ctx
local function drive(call, ctx)
  local co = coroutine.create(call.definition.handler)
  local function step(...)
    if call:ended() then
      return -- no code of the tool runs after the end
    elseif vim.in_fast_event() then
      return vim.schedule(step) -- only the first step has arguments, and it is never in a fast event
    end
    local ok, value, err = coroutine.resume(co, ...)
    if not ok then
      threw(
        call,
        { value = value, trace = debug.traceback(co, type(value) == 'string' and value or vim.inspect(value)) }
      )
    elseif coroutine.status(co) == 'dead' then
      if not (call:ended() and value == nil) then -- after `return ctx:fail(…)` the call has ended
        ctx(value, value == nil and err or nil)
      end
    elseif value ~= Ctx.AWAIT then
      if value ~= nil then -- a bare yield only lets the editor process events
        call:notify('state', value)
      end
      vim.schedule(step)
    end
    if call:ended() then
      Ctx.assign(co)
    end
  end
  Ctx.assign(co, call, step)
  call:on_end(function()
    if coroutine.status(co) == 'suspended' then -- otherwise it is running, and `step` releases it
      Ctx.assign(co)
    end
  end)
  step(ctx, call.args)
end

--- Calls the handler and starts the timeout.
---
--- The check for lateness is the last step before the handler: the client of a late call may have been told that
--- nothing ran. It comes after `started`, which ends the bridge's wait for the start.
---@param call mcp-tools.Call
---@param state table? returned by the definition's `state()`
function M.start(call, state)
  if not call:move('start') then
    return
  end
  local definition, ms = call.definition, call.timeout
  call.started_at = uv.hrtime()
  call.deadline = ms > 0 and call.started_at + ms * 1e6 or nil
  call:notify('started')
  local ctx = Ctx.new(call, settle, threw, state)
  local late = call:late()
  if late then
    call:finish('fail', { error = late })
  elseif definition.style == 'run' then
    drive(call, ctx)
  else
    local ok, value, message = Ctx.within(call, xpcall, definition.handler, trace, ctx, call.args)
    if not ok then
      threw(call, value --[[@as any]])
    elseif (value ~= nil or message ~= nil) and not call:ended() then
      hint_at_returned(call, value, message)
    end
  end
  if call.deadline and call.state == 'running' then
    call:stop_clock() -- subtracts the time that the handler has already used
    call:start_clock()
  end
end

return M
