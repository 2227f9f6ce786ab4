--- Runs the handlers of calls, and gives them `ctx`, the context of a call.
---
--- `ctx(result)` and `ctx(nil, err)` end the call, so that handlers `execute(cb, args)` of guill/mcp-tools.nvim run
--- unchanged.

local errors = require('mcp-tools.errors')
local host_resources = require('mcp-tools.calls.inputs.host_resources')
local inputs = require('mcp-tools.calls.inputs')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local resource = require('mcp-tools.calls.kinds.resource')
local task = require('mcp-tools.util.task')
local utf8 = require('mcp-tools.util.utf8')
local validate = require('mcp-tools.util.validate')

local uv = vim.uv

local M = {}

-- The running handler -----------------------------------------------------------------------------------------------

--- Calls by the coroutine of their handler. Entries are removed explicitly; weak keys would not work, because the
--- values refer to the keys.
---
--- `execute` handlers run in the coroutine of the caller. While one processes events (`vim.wait()`, `input()`), other
--- timers run in that coroutine, too, and `running` returns the handler's call for them. A coroutine for each handler
--- would be worse: a library that detects one would yield in it, and nothing would resume it.
---@type table<thread|'main', mcp-tools.Call>
local calls = {}
---@type table<thread, fun()> functions that resume the coroutines of `run` handlers
local steps = {}

---@return thread|'main'
local function here()
  return coroutine.running() or 'main'
end

--- Returns the call whose handler is running, if any. Timers and callbacks that a handler has started have none.
---@return mcp-tools.Call?
function M.running()
  return calls[here()]
end

--- Returns the function that resumes the current coroutine, if it belongs to a `run` handler. Nothing else may
--- resume it.
---@return fun()?
function M.step()
  return steps[here()]
end

--- Assigns the coroutine of a `run` handler to a call, or releases it.
---@param co thread
---@param call mcp-tools.Call? nil: the coroutine will not run any more
---@param step fun()? the only function that may resume it
local function assign(co, call, step)
  calls[co], steps[co] = call, step
end

--- Runs `fn` as the handler of a call; it must not throw.
---@generic T
---@param call mcp-tools.Call
---@param fn fun(...): T
---@return T ...
local function within(call, fn, ...)
  local place = here()
  local before = calls[place]
  calls[place] = call
  local one, two, three = fn(...)
  calls[place] = before
  return one, two, three
end

-- Results and errors ------------------------------------------------------------------------------------------------

---@param err any
---@return mcp-tools.Error
local function read_error(err)
  if errors.is(err) then
    local copy = errors.new(err.code, err.message, err.errors)
    copy.required, copy.retry_after_ms = err.required, err.retry_after_ms
    return copy
  end
  if type(err) == 'table' and type(err.message) == 'string' then
    return errors.new('tool_error', err.message)
  end
  return errors.new('tool_error', type(err) == 'string' and err or vim.inspect(err))
end

--- Converts what a tool passed as its error.
---@param err any
---@return mcp-tools.Error
local function tool_error(err)
  local ok, value = pcall(read_error, err)
  return ok and value or errors.new('execution_error', 'Tool execution error: the error value cannot be read')
end

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
  local ok, payload, err = xpcall(call.kind.payload, trace, result, call.definition, call.max_result, call)
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

--- Fails a call whose tool threw. A thrown mcp-tools.Error becomes its error, as if it had been passed to `ctx`. For
--- any other value, the error has the first line of the message; the log and `:McpTools call` show the traceback.
---@param call mcp-tools.Call
---@param thrown { value: any, trace: string }
local function threw(call, thrown)
  local is_read, is_error = pcall(errors.is, thrown.value)
  if is_read and is_error then
    return settle(call, nil, tool_error(thrown.value))
  end
  log.error('call %s (%s) threw: %s', call.id, call.name, thrown.trace)
  call.trace = thrown.trace
  if not call:ended() then
    fail(call, errors.new('execution_error', 'Tool execution error: ' .. first_line(thrown.value)))
  end
end

-- The context -------------------------------------------------------------------------------------------------------

--- Yielded by `ctx:await`; any other yielded value except nil is an intermediate state of the tool.
M.AWAIT = {}

local LEVELS = { 'debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency' }

---@class mcp-tools.CallContext fields that only the plugin uses
---@field call mcp-tools.Call
---@field threw? fun(call: mcp-tools.Call, thrown: { value: any, trace: string }) called when a callback throws

---@class mcp-tools.Ctx: mcp-tools.CallContext
---@overload fun(result: any, err?: any)
---@field id string the call's id
---@field host string "mcp", "nvim", "python", "command" (`:McpTools call`) or a custom name
---@field client { name: string?, version: string? } as the client reports it
---@field session string? one per client session
---@field capabilities table declared by the client
---@field deadline integer? ns, comparable with vim.uv.hrtime()
---@field root string project root that the call was approved for
---@field cwd string working directory when the call arrived
---@field max_result integer maximum size of the result in bytes
---@field state table? returned by the definition's `state()`, one per session
local Ctx = { threw = threw }

local FROM_CALL = {}
for field in ('id host client session capabilities deadline root cwd max_result'):gmatch('%S+') do
  FROM_CALL[field] = true
end

--- Calls a function on the main loop: at once, unless in a fast event, where the listener could not use the API.
---@param fn fun()
local function on_main_loop(fn)
  if vim.in_fast_event() then
    return vim.schedule(fn)
  end
  fn()
end

local mt = {}

function mt.__index(ctx, key)
  if FROM_CALL[key] then
    return rawget(ctx, 'call')[key]
  end
  return Ctx[key]
end

--- Ends the call with a result, or with an error if `err` is not nil.
---@param result any
---@param err? string|{ code: mcp-tools.ErrorCode?, message: string, errors?: mcp-tools.Fault[] }
function mt.__call(ctx, result, err)
  on_main_loop(function()
    if err ~= nil and err ~= vim.NIL then
      settle(ctx.call, nil, tool_error(err))
    else
      settle(ctx.call, result)
    end
  end)
end

--- Creates the ctx of a call.
---@param call mcp-tools.Call
---@param state? table returned by the definition's `state()`
---@return mcp-tools.Ctx
function M.new(call, state)
  return setmetatable({ call = call, state = state }, mt)
end

--- Fails the call: `ctx:fail("no such file")` or `ctx:fail("not_found", "no such file")`.
---@param code mcp-tools.ErrorCode|string
---@param message? string
function Ctx:fail(code, message)
  if message == nil then
    code, message = 'tool_error', code
  end
  self(nil, { code = code, message = tostring(message) })
end

--- Fails the read of a resource with the error for an unknown URI. Only the log has the cause.
---@param cause string
function Ctx:miss(cause)
  self(nil, resource.miss(self.call.name, cause))
end

--- Reports a bad argument of a ctx method. Throws inside the handler; in a later callback it fails the call, because
--- an uncaught error there would be shown to the user each time.
---@param ctx mcp-tools.Ctx
---@param fault string
local function report_misuse(ctx, fault)
  if M.running() == ctx.call then
    error(fault, 3)
  elseif not ctx.call:ended() then
    local thrown = { value = fault, trace = debug.traceback(fault, 3) }
    on_main_loop(function()
      threw(ctx.call, thrown)
    end)
  end
end

--- Reports progress; clients that asked for it are notified at once.
---@param done number
---@param total? number
---@param message? string
function Ctx:progress(done, total, message)
  local fault = type(done) ~= 'number' and 'done: expected number, got ' .. type(done)
    or total ~= nil and type(total) ~= 'number' and 'total: expected number, got ' .. type(total)
    or message ~= nil and type(message) ~= 'string' and 'message: expected string, got ' .. type(message)
  if fault then
    report_misuse(self, 'ctx:progress: ' .. fault) -- no tail call: the level of its error would change
    return
  end
  on_main_loop(function()
    self.call:progress(done, total, message)
  end)
end

--- Sends a log message to the client.
---@param level 'debug'|'info'|'notice'|'warning'|'error'|'critical'|'alert'|'emergency'
---@param data any
function Ctx:log(level, data)
  if not vim.list_contains(LEVELS, level) then
    local text = "ctx:log: unknown level '%s' (one of %s)"
    report_misuse(self, text:format(tostring(level), table.concat(LEVELS, ', ')))
    return
  end
  on_main_loop(function()
    if not self.call:ended() then
      self.call:notify('log', level, data)
    end
  end)
end

--- Returns whether the call was cancelled or timed out. Then the tool should stop.
---@return boolean|string reason false while the call runs, otherwise why it ended
function Ctx:cancelled()
  return self.call:ended() and self.call.cancel_reason or false
end

--- Calls `fn(reason)` when the call is cancelled or times out, for example to kill a job or close a window.
---@param fn fun(reason: string)
function Ctx:on_cancel(fn)
  validate('fn', fn, 'callable')
  self.call:on_cancel(fn)
end

--- Returns whether this is a file that the arguments name, so that the approval includes it. Check it after the file
--- is open: a directory may have become a symlink since. A buffer without a file is identified by its number.
---@param what string|integer resolved path, or a buffer number
---@return boolean
function Ctx:covers(what)
  validate('what', what, type(what) == 'number' and 'number' or 'string')
  for _, target in ipairs(self.call.targets or {}) do
    if target.other and target.bufnr == what or not target.other and target.path == what then
      return true
    end
  end
  return false
end

--- In `run` tools: calls `fn(done)`, waits until `done(...)` is called, and returns its arguments.
---@param fn fun(done: fun(...))
---@return any ... the arguments of `done`
function Ctx:await(fn)
  validate('fn', fn, 'callable')
  local step = M.step()
  if not step then
    error('ctx:await works only in the coroutine of a `run` tool', 2)
  end
  return task.await(fn, function()
    coroutine.yield(M.AWAIT)
  end, step)
end

--- Asks the client and passes the answer to `cb`; without `cb`, in a `run` tool, waits and returns it.
---@param ctx mcp-tools.Ctx
---@param requests table<string, mcp-tools.Input>
---@param cb? fun(value: any, err: mcp-tools.Error?)
---@param value_of? fun(results: table): any (default: all answers)
---@return any, mcp-tools.Error?
local function ask(ctx, requests, cb, value_of)
  local call = ctx.call
  local function begin(done)
    inputs.ask(call, requests, function(results, err)
      if value_of then
        results = not err and value_of(results) or nil
      end
      done(results, err)
    end)
  end
  if not cb then
    return ctx:await(begin)
  end
  begin(function(...)
    local ok, thrown = xpcall(cb, trace, ...)
    if not ok then
      threw(call, thrown --[[@as any]])
    end
  end)
end

--- Sends one request to the client.
---@param ctx mcp-tools.Ctx
---@param method any
---@param params table?
---@param cb? fun(value: any, err: mcp-tools.Error?)
---@param field? string field of the answer to return (default: the whole answer)
---@return any, mcp-tools.Error?
local function ask_one(ctx, method, params, cb, field)
  return ask(ctx, { answer = { method = method, params = params } }, cb, function(results)
    return field and results.answer[field] or results.answer
  end)
end

--- Asks the user of the client to fill in a form. `answer.action` is `accept` (then `answer.content` has the values),
--- `decline` or `cancel`. In `run` tools `cb` is optional; without it, returns `answer, err`.
---
--- The timeout is paused meanwhile. Fails with `capability_missing` at once if the client does not support it.
---@param message string shown to the user
---@param schema table JSON Schema: an object with flat properties (strings, numbers, booleans, enums)
---@param cb? fun(answer: mcp-tools.ElicitResult?, err: mcp-tools.Error?)
---@return mcp-tools.ElicitResult? answer, mcp-tools.Error? err
function Ctx:elicit(message, schema, cb)
  validate('message', message, 'string')
  validate('schema', schema, 'table')
  validate('cb', cb, 'callable', true)
  local params = { message = message, requestedSchema = schema }
  return ask_one(self, 'elicitation/create', params, cb)
end

--- Asks the client's language model. `params` are those of MCP's `sampling/createMessage`: `messages`, `maxTokens`, …
--- The answer has `role`, `content`, `model` and `stopReason`.
---@param params table `{ messages = { { role = 'user', content = { type = 'text', text = … } } }, maxTokens = … }`
---@param cb? fun(answer: table?, err: mcp-tools.Error?)
---@return table? answer, mcp-tools.Error? err
function Ctx:sample(params, cb)
  validate('params', params, 'table')
  validate('params.messages', params.messages, 'table')
  validate('cb', cb, 'callable', true)
  local whole = vim.tbl_extend('keep', params, { maxTokens = 1000 })
  return ask_one(self, 'sampling/createMessage', whole, cb)
end

--- Asks the client for its workspace roots, a list of `{ uri, name? }`.
---@param cb? fun(roots: { uri: string, name: string? }[]?, err: mcp-tools.Error?)
---@return { uri: string, name: string? }[]? roots, mcp-tools.Error? err
function Ctx:roots(cb)
  validate('cb', cb, 'callable', true)
  return ask_one(self, 'roots/list', nil, cb, 'roots')
end

--- Sends several requests to the client at once: key → `{ method, params }`, with the methods `elicitation/create`,
--- `sampling/createMessage` and `roots/list`, and any keys. The answers have the same keys. If some fail, `err.errors`
--- names their keys, and `answers` has the others.
---@param requests table<string, mcp-tools.Input>
---@param cb? fun(answers: table<string, table>?, err: mcp-tools.Error?)
---@return table<string, table>? answers, mcp-tools.Error? err
function Ctx:request_inputs(requests, cb)
  inputs.check(requests)
  validate('cb', cb, 'callable', true)
  return ask(self, vim.deepcopy(requests), cb)
end

--- Returns access to the client's files (extension `ai.nimblebrain/host-resources`). Check `available` and
--- `list_available` before `read` and `list`. Never available for clients without a session.
---@return mcp-tools.HostResources
function Ctx:host_resources()
  return host_resources.new(self, ask_one)
end

-- Handlers ----------------------------------------------------------------------------------------------------------

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
      local text = type(value) == 'string' and value or vim.inspect(value)
      threw(call, { value = value, trace = debug.traceback(co, text) })
    elseif coroutine.status(co) == 'dead' then
      if not (call:ended() and value == nil) then -- after `return ctx:fail(…)` the call has ended
        ctx(value, value == nil and err or nil)
      end
    elseif value ~= M.AWAIT then
      if value ~= nil then -- a bare yield only lets the editor process events
        call:notify('state', value)
      end
      vim.schedule(step)
    end
    if call:ended() then
      assign(co)
    end
  end
  assign(co, call, step)
  call:on_end(function()
    if coroutine.status(co) == 'suspended' then -- otherwise it is running, and `step` releases it
      assign(co)
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
  local ctx = M.new(call, state)
  local late = call:late()
  if late then
    call:finish('fail', { error = late })
  elseif definition.style == 'run' then
    drive(call, ctx)
  else
    local ok, value, message = within(call, xpcall, definition.handler, trace, ctx, call.args)
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
