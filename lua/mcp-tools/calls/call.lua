--- One call: its state, its single outcome, its progress and its cancel hooks.
---
--- TRANSITIONS is the only place that defines which state may follow which. Any other move changes nothing.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local timer = require('mcp-tools.util.timer')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

local M = {}

---@alias mcp-tools.CallState
---| 'received'          # not yet approved or denied
---| 'waiting_approval'  # the user is asked, here or through the client; the timeout does not run yet
---| 'running'           # the handler was called
---| 'waiting_input'     # the handler waits for an answer of the client; the timeout is paused
---| 'done' | 'failed' | 'timed_out' | 'cancelled'

--- state → event → next state
local TRANSITIONS = {
  received = { ask = 'waiting_approval', start = 'running', fail = 'failed', cancel = 'cancelled' },
  waiting_approval = {
    await_input = 'waiting_approval',
    input = 'waiting_approval',
    start = 'running',
    fail = 'failed',
    cancel = 'cancelled',
  },
  running = {
    await_input = 'waiting_input',
    finish = 'done',
    fail = 'failed',
    time_out = 'timed_out',
    cancel = 'cancelled',
  },
  waiting_input = {
    input = 'running',
    finish = 'done',
    fail = 'failed',
    time_out = 'timed_out',
    cancel = 'cancelled',
  },
  done = {},
  failed = {},
  timed_out = {},
  cancelled = {},
}

--- Cancel reasons of the RPC protocol, and what the error message says for each.
local REASONS = {
  client = 'the client cancelled it',
  disconnected = 'the client disconnected',
  session_closed = 'the session was closed',
  client_gone = 'the client has been silent and without a connection for too long',
  bridge_gone = 'the bridge ended',
  shutdown = 'the bridge is shutting down',
  user = 'the user cancelled it',
  parent = 'the tool that called it was cancelled',
  timeout = 'it timed out',
  blocked = 'the editor did not start it in time',
  unreadable = 'the bridge could not read a message of the editor about it',
}

--- ns that a tool may take to start after the user has answered in time. The bridge waits twice as long.
local ANSWER_GRACE = 1e9

--- Maximum size in bytes of a progress message: it is one line on a screen, sent often, and kept with the call.
local MAX_MESSAGE = 4 * 1024

--- Receives the events of a call. Every method is optional.
---@class mcp-tools.Listener
---@field started? fun(self, call: mcp-tools.Call) just before the handler is called
---@field progress? fun(self, call: mcp-tools.Call) `call.latest` has changed
---@field log? fun(self, call: mcp-tools.Call, level: string, data: any)
---@field state? fun(self, call: mcp-tools.Call, state: any) an intermediate state
---@field inputs? fun(self, call: mcp-tools.Call) `call.inputs` has changed: the question to the client, or nil
---@field done? fun(self, call: mcp-tools.Call) `call.outcome` is set

---@class mcp-tools.Progress
---@field seq integer 1-based
---@field done number
---@field total number?
---@field message string?
---@field state string? JSON text of an intermediate state that is not a string

---@class mcp-tools.Outcome
---@field state? mcp-tools.CallState of the ended call
---@field value any the handler's result, unchanged
---@field payload mcp-tools.Payload? if the call is done
---@field error mcp-tools.Error? if it is not

--- One call. A letter marks fields that another file sets: (e) calls/executor.lua, (c) calls/ctx.lua,
--- (q) calls/inputs/init.lua, (g) approval/gateway.lua, (a) ui/approval, (d) editor/edit. There are no other fields.
---@class mcp-tools.Call
---@field id string
---@field name string the definition's name; the requested name until the definition is found (e)
---@field state mcp-tools.CallState
---@field host string
---@field client { name: string?, version: string? }
---@field session string?
---@field capabilities table
---@field listener mcp-tools.Listener
---@field keep boolean? the outcome is kept until acknowledged
---@field start_by integer? ns; the handler is not called after this time, unless the user was asked before it
---@field answer_by integer? ns; until when the answer of the user is accepted (a)
---@field kind mcp-tools.CallKind? (e)
---@field definition table? normalized (e)
---@field args table? (e); (g) restores the arguments that the user saw
---@field timeout integer? ms; 0 = none (e)
---@field max_result integer? maximum size of the result's content in bytes (e)
---@field leave? fun(call: mcp-tools.Call) called at the end, before the listener (e)
---@field capacity_error? fun(size: integer): mcp-tools.Error? why a result of `size` bytes cannot be kept (e)
---@field root string? project root when the call came in; does not follow the user to another project (e)
---@field cwd string? (e)
---@field project string? resolved root that the decision applies to (g)
---@field targets mcp-tools.CallTarget[]? files that the arguments name, as they were approved (g)
---@field approved_preview string? text of the preview when the user approved the call (a), (d)
---@field snapshot table? the arguments as they were approved, for util/canonical_json.lua (g)
---@field decision { allowed: boolean, by: string }? (g)
---@field created_at integer ns, vim.uv.hrtime
---@field started_at integer? ns (c)
---@field ended_at integer? ns
---@field deadline integer? ns; nil before the start, while it waits for inputs, and without a timeout (c)
---@field remaining integer? ns that are left of the timeout while it is paused
---@field questions mcp-tools.InputQuestion[]? questions to the client; the first is the open one (q)
---@field inputs mcp-tools.Inputs? the open question as it is sent to the client (q)
---@field asked integer number of questions opened so far (q)
---@field withdrawn integer? `seq` of the last question that was withdrawn (q)
---@field latest mcp-tools.Progress?
---@field has_changes boolean? it has changed files or buffers, which a cancel does not undo (d)
---@field hint string? what may be wrong with the handler; part of the timeout message (c)
---@field trace string? traceback of an error in the handler; never sent to clients (c)
---@field cancel_reason string? why the handler must stop
---@field outcome mcp-tools.Outcome?
---@field private timer mcp-tools.Timer? of the timeout
---@field private hooks (fun(reason: string))[]? called after a cancel or timeout
---@field private enders fun()[]? called at the end, whatever the outcome
local Call = {}
Call.__index = Call

--- Creates a call in the state `received`.
---@param fields { id?: string, name?: string, host: string, client?: table, session?: string, capabilities?: table,
---  listener?: mcp-tools.Listener, start_by?: integer, keep?: boolean }
---@param id? string overrides `fields.id`
---@param name? string overrides `fields.name`
---@return mcp-tools.Call
function M.new(fields, id, name)
  return setmetatable({
    id = id or fields.id,
    name = name or fields.name,
    state = 'received',
    host = fields.host,
    client = fields.client or {},
    session = fields.session,
    capabilities = fields.capabilities or {},
    listener = fields.listener or {},
    start_by = fields.start_by,
    keep = fields.keep,
    asked = 0,
    created_at = uv.hrtime(),
  }, Call)
end

--- Changes the state as TRANSITIONS defines.
---@param event string
---@return boolean moved false if there is no such transition; then nothing has changed
function Call:move(event)
  local state = TRANSITIONS[self.state][event]
  if not state then
    return false
  end
  self.state = state --[[@as mcp-tools.CallState]]
  return true
end

---@return boolean
function Call:ended()
  return next(TRANSITIONS[self.state]) == nil
end

--- Returns an error if `start_by` has passed. Then the handler must not run: the client may have been told that
--- nothing ran.
---@return mcp-tools.Error? err
function Call:late()
  local by = self.start_by
  if by and self.answer_by then
    by = self.answer_by + ANSWER_GRACE
  end
  if by and uv.hrtime() > by then
    return errors.new('editor_blocked', 'the editor did not start the call in time; nothing ran')
  end
end

--- Notifies the listener. An error in the listener does not affect the call.
---@param what 'started'|'progress'|'log'|'state'|'inputs'|'done'
function Call:notify(what, ...)
  local method = self.listener[what]
  if method then
    local ok, err = xpcall(method, debug.traceback, self.listener, self, ...)
    if not ok then
      log.error("call %s (%s): the listener's '%s' failed: %s", self.id, self.name, what, err)
    end
  end
end

--- Ends the call, unless it has ended: a second end is logged and dropped.
---@param event 'finish'|'fail'|'time_out'|'cancel'
---@param outcome mcp-tools.Outcome its state is set here
---@return boolean ended true if this ended the call
function Call:finish(event, outcome)
  if not self:move(event) then
    log.warn("call %s (%s): is already %s; '%s' was dropped", self.id, self.name, self.state, event)
    return false
  end
  self.ended_at = uv.hrtime()
  if self.has_changes and self.cancel_reason then
    outcome.error.message = outcome.error.message .. '; the changes that it had made remain'
  end
  outcome.state = self.state
  self.outcome = outcome
  self:stop_clock()
  local hooks, enders = self.hooks, self.enders
  if hooks or enders or self.questions then -- assigning nil to four new keys would grow the table
    self.hooks, self.enders, self.questions, self.inputs = nil, nil, nil, nil
  end
  if hooks and (event == 'cancel' or event == 'time_out') then
    for _, hook in ipairs(vim.list_slice(hooks)) do
      self:run_hook(hook)
    end
  end
  for _, fn in ipairs(enders or {}) do
    log.guard(('call %s (%s): an on_end function'):format(self.id, self.name), fn)
  end
  if self.leave then
    self.leave(self)
  end
  self:notify('done')
  return true
end

---@param hook fun(reason: string)
function Call:run_hook(hook)
  log.guard(('call %s (%s): its cancel hook'):format(self.id, self.name), hook, self.cancel_reason)
end

--- Ends the call as failed.
---@param code mcp-tools.ErrorCode
---@param message string
---@param faults? mcp-tools.Fault[]
function Call:fail(code, message, faults)
  return self:finish('fail', { error = errors.new(code, message, faults) })
end

--- Ends the call as cancelled and runs its cancel hooks.
---@param reason string key of REASONS
---@return boolean cancelled false if it had already ended
function Call:cancel(reason)
  if self:ended() then
    return false
  end
  self.cancel_reason = reason
  if reason == 'timeout' and TRANSITIONS[self.state].time_out then
    return self:finish('time_out', { error = errors.new('timeout', 'no client asked for the result in time') })
  end
  local why = REASONS[reason] or reason
  return self:finish('cancel', { error = errors.new('cancelled', 'cancelled: ' .. why) })
end

--- Starts or resumes the timeout.
function Call:start_clock()
  if not self.remaining or self.state ~= 'running' then
    return
  end
  self.deadline = uv.hrtime() + self.remaining
  self.timer = timer.after(self.remaining / 1e6, function()
    self:time_out(self.timeout)
  end)
  self.remaining = nil
end

--- Pauses the timeout and keeps the remaining time.
function Call:stop_clock()
  if self.deadline and not self:ended() then
    self.remaining, self.deadline = math.max(0, self.deadline - uv.hrtime()), nil
  end
  if self.timer then
    self.timer:stop()
    self.timer = nil
  end
end

--- Ends the call as timed out and runs its cancel hooks.
---@param ms integer the timeout, for the message
function Call:time_out(ms)
  if self:ended() then
    return
  end
  self.cancel_reason = 'timeout'
  local text = 'no result within %d ms; the tool was cancelled. Raise `timeout` in its definition or the option'
    .. ' bridge.tool_timeout'
  text = text:format(ms) .. (self.hint and '; ' .. self.hint or '')
  self:finish('time_out', { error = errors.new('timeout', text) })
end

--- Adds a hook that runs after a cancel or timeout; runs it now if that has already happened.
---@param hook fun(reason: string)
---@return fun() remove
function Call:on_cancel(hook)
  if self.cancel_reason and self:ended() then
    self:run_hook(hook)
    return function() end
  end
  local hooks = self.hooks or {}
  self.hooks = hooks
  table.insert(hooks, hook)
  return function()
    for i, other in ipairs(hooks) do
      if other == hook then
        table.remove(hooks, i)
        return
      end
    end
  end
end

--- Calls `fn` when the call ends, whatever the outcome; now if it has already ended. `fn` must not throw.
---@param fn fun()
function Call:on_end(fn)
  if self:ended() then
    return fn()
  end
  self.enders = self.enders or {}
  table.insert(self.enders, fn)
end

---@param value any
---@return boolean
local function is_finite(value)
  return value == value and math.abs(value) ~= math.huge
end

--- Stores progress and notifies the listener. Ignores NaN and infinite numbers, which JSON does not have.
---@param done number
---@param total? number
---@param message? string
---@param state? string JSON text
function Call:progress(done, total, message, state)
  if self:ended() or not is_finite(done) then
    return
  end
  total = total and is_finite(total) and total or nil
  if message and #message > MAX_MESSAGE then
    message = ('%s (cut: %d of %d bytes)'):format(utf8.cut(message, MAX_MESSAGE), MAX_MESSAGE, #message)
  end
  local seq = self.latest and self.latest.seq + 1 or 1
  self.latest = { seq = seq, done = done, total = total, message = message, state = state }
  self:notify('progress')
end

return M
