--- A tool's handler, run: the only place that knows the styles `execute` and `run`.
---
--- Receives: a call that may run, with its definition and checked arguments.
--- Sends: the handler its `ctx`; the call its end, whether the handler answers, throws or runs out of time.
--- Does not know about: registries, policy, who asked.

local Ctx = require('mcp-tools.call.ctx')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')

local uv = vim.uv

local M = {}

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
    payload, err = call.kind.payload(result, call.definition, call.max_result)
    if payload then
      call:finish('finish', { value = result, payload = payload })
      return
    end
  end
  call:finish('fail', { error = err })
end

--- The tool threw: the client gets the message, the log the traceback.
---@param call mcp-tools.Call
---@param thrown { value: any, trace: string }
local function threw(call, thrown)
  log.error('call %s (%s) threw: %s', call.id, call.name, thrown.trace)
  if call:ended() then
    return
  end
  local err
  if errors.is(thrown.value) then
    err = Ctx.tool_error(thrown.value)
  else
    local text = type(thrown.value) == 'string' and thrown.value or vim.inspect(thrown.value)
    text = vim.split(text, '\n', { plain = true })[1]:gsub('^[^:]*:%d+: ', '')
    err = errors.new('execution_error', 'Tool execution error: ' .. text)
  end
  call:finish('fail', { error = err })
end

local function trace(value)
  return { value = value, trace = debug.traceback(type(value) == 'string' and value or vim.inspect(value), 2) }
end

--- Runs a `run` tool's coroutine from one waiting point to the next.
---@param call mcp-tools.Call
---@param ctx mcp-tools.Ctx
local function drive(call, ctx)
  local co
  local function step(...)
    if call:ended() then
      return -- abandoned: nothing of it runs after the end
    end
    local ok, value = coroutine.resume(co, ...)
    if not ok then
      threw(call, { value = value, trace = debug.traceback(co, tostring(value)) })
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
  end
  co = coroutine.create(call.definition.handler)
  Ctx.steps[co] = step
  step(ctx, call.args)
end

--- Calls the tool. From here its time counts.
---@param call mcp-tools.Call
---@param max_result integer bytes of content allowed
function M.start(call, max_result)
  if not call:move('start') then
    return
  end
  local definition, ms = call.definition, call.timeout
  call.max_result = max_result
  call.started_at = uv.hrtime()
  call.deadline = ms > 0 and call.started_at + ms * 1e6 or nil
  call:tell('started')
  local ctx = Ctx.new(call, settle, threw)
  if definition.style == 'run' then
    drive(call, ctx)
  else
    local ok, thrown = xpcall(definition.handler, trace, ctx, call.args)
    if not ok then
      threw(call, thrown)
    end
  end
  if call.deadline and not call.timer and call.state == 'running' then
    call:stop_clock() -- what a tool does before it first waits is its time, too
    call:start_clock()
  end
end

return M
