--- A tool's handler, run: the only place that knows the styles `execute` and `run`.

local Ctx = require('mcp-tools.calls.ctx')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local running = require('mcp-tools.calls.current')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

local M = {}

--- An error of the tool's code, as a text of one line without its place.
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

---@param value any what was thrown
---@return { value: any, trace: string }
local function trace(value)
  return { value = value, trace = debug.traceback(type(value) == 'string' and value or vim.inspect(value), 2) }
end

--- What goes to whoever asked. A value may throw when it is read.
---@param call mcp-tools.Call
---@param result any
---@return mcp-tools.Payload? payload
---@return mcp-tools.Error? err
local function payload_of(call, result)
  local ok, payload, err = xpcall(call.kind.payload, trace, result, call.definition, call.max_result)
  if ok then
    return payload, err
  end
  log.error('call %s (%s): its result cannot be read: %s', call.id, call.name, payload.trace)
  call.trace = payload.trace
  local text = 'Tool execution error: its result cannot be read: '
  return nil, errors.new('execution_error', text .. first_line(payload.value))
end

--- Fails a call. What the tool says of it is as long as a result may be, at most.
---@param call mcp-tools.Call
---@param err mcp-tools.Error
local function fail(call, err)
  err.message = utf8.cut(err.message, call.max_result)
  call:finish('fail', { error = err })
end

--- Bytes of a result beyond which the value that it was made of is not kept beside it.
local LARGE = 64 * 1024

--- Settles a call with what its tool gave.
---@param call mcp-tools.Call
---@param result any
---@param err mcp-tools.Error?
local function settle(call, result, err)
  if call:ended() then
    log.warn('call %s (%s): answered when it was %s already; dropped', call.id, call.name, call.state)
    return
  end
  if not err then
    local payload
    payload, err = payload_of(call, result)
    local size = payload and payload.text and #payload.text or 0
    if size > LARGE and call.room then
      err = call.room(size)
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

--- The tool threw: the client gets the message, the log and who calls it by hand the traceback.
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

--- What a handler returns is ignored, and many return the handle of what they have started. Others have meant
--- `ctx(result)`: that is only known, and reported, when no answer has come in time.
---@param call mcp-tools.Call
---@param value any
---@param message any returned after nil, as an error is
local function note_returned(call, value, message)
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
      return -- abandoned: nothing of it runs after the end
    elseif vim.in_fast_event() then
      return vim.schedule(step) -- it waited; such a step takes no values
    end
    local ok, value = coroutine.resume(co, ...)
    if not ok then
      threw(
        call,
        { value = value, trace = debug.traceback(co, type(value) == 'string' and value or vim.inspect(value)) }
      )
    elseif coroutine.status(co) == 'dead' then
      if not (call:ended() and value == nil) then -- `return ctx:fail(…)` has settled already
        settle(call, value)
      end
    elseif value ~= Ctx.AWAIT then
      if value ~= nil then -- a bare yield only lets the editor go on
        call:tell('state', value)
      end
      vim.schedule(step)
    end
    if call:ended() then
      running.release(co)
    end
  end
  running.adopt(co, call, step)
  call:on_end(function()
    if coroutine.status(co) == 'suspended' then -- else it runs, and `step` does it
      running.release(co)
    end
  end)
  step(ctx, call.args)
end

--- Calls the tool. From here its time counts.
---
--- The last thing before the handler is the look at the clock: whoever asked for a call that is late may have been told
--- that nothing ran. It comes after word that the call has started, which ends their waiting for that.
---@param call mcp-tools.Call
---@param state table? what the definition's `state()` made
function M.start(call, state)
  if not call:move('start') then
    return
  end
  local definition, ms = call.definition, call.timeout
  call.started_at = uv.hrtime()
  call.deadline = ms > 0 and call.started_at + ms * 1e6 or nil
  call:tell('started')
  local ctx = Ctx.new(call, settle, threw, state)
  local late = call:late()
  if late then
    call:finish('fail', { error = late })
  elseif definition.style == 'run' then
    drive(call, ctx)
  else
    local ok, value, message = running.within(call, xpcall, definition.handler, trace, ctx, call.args)
    if not ok then
      threw(call, value)
    elseif (value ~= nil or message ~= nil) and not call:ended() then
      note_returned(call, value, message)
    end
  end
  if call.deadline and call.state == 'running' then
    call:stop_clock() -- what a tool does before it first waits is its time, too
    call:start_clock()
  end
end

return M
