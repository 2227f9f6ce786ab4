--- One call: its state, its single outcome, its progress and its cancel hooks.
---
--- The law: TRANSITIONS alone says what may follow what. A move that is not in it changes nothing.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local timer = require('mcp-tools.util.timer')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

local M = {}

---@alias mcp-tools.CallState
---| 'received'          # found, not yet decided
---| 'waiting_approval'  # a person is being asked, by the client perhaps; the tool's time has not begun
---| 'running'           # the tool has it
---| 'waiting_input'     # the tool waits for its client; its time stands still
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

--- The reasons to stop that the wire knows, for whoever reads the error.
local REASONS = {
  client = 'the client cancelled it',
  disconnected = 'the client disconnected',
  session_closed = 'the session was closed',
  client_gone = 'the client has been silent and without a connection for too long',
  bridge_gone = 'the bridge ended',
  shutdown = 'the bridge is shutting down',
  user = 'the person at the editor cancelled it',
  parent = 'the tool that called it was told to stop',
  timeout = 'its time was up',
  blocked = 'the editor did not get to it in time',
  unreadable = 'what the editor said of it could not be read',
}

--- A person's answer counts until its time is up; what follows from it may still be judged for so long (ns). Whoever
--- asked for the call waits twice as long.
local ANSWER_GRACE = 1e9

--- Bytes of a progress message: it is a line for people, goes out many times a second, and stays with the call.
local MAX_MESSAGE = 4 * 1024

--- Who hears of a call. Every method is optional.
---@class mcp-tools.Listener
---@field started? fun(self, call: mcp-tools.Call) just before the tool is called
---@field progress? fun(self, call: mcp-tools.Call) `call.latest` is new
---@field log? fun(self, call: mcp-tools.Call, level: string, data: any)
---@field state? fun(self, call: mcp-tools.Call, state: any) an intermediate state
---@field inputs? fun(self, call: mcp-tools.Call) `call.inputs` is what the client is to be asked for, if anything
---@field done? fun(self, call: mcp-tools.Call) the outcome is there

---@class mcp-tools.Progress
---@field seq integer counts from 1
---@field done number
---@field total number?
---@field message string?
---@field state string? JSON text of an intermediate state that is no string

---@class mcp-tools.Outcome
---@field state 'done'|'failed'|'timed_out'|'cancelled'
---@field value any what the tool gave, as it gave it
---@field payload mcp-tools.Payload? of a call that is done
---@field error mcp-tools.Error? of one that is not

--- One call. Who writes a field stands in brackets, where it is not this file: (e) calls/executor.lua,
--- (i) calls/invoke.lua, (q) calls/inputs/init.lua, (g) approval/gateway.lua, (a) ui/approval. Nobody adds others.
---@class mcp-tools.Call
---@field id string
---@field name string the tool's name; as it was asked for until that is known (e)
---@field state mcp-tools.CallState
---@field host string
---@field client { name: string?, version: string? }
---@field session string?
---@field capabilities table
---@field listener mcp-tools.Listener
---@field keep boolean? the outcome is kept until acknowledged
---@field start_by integer? ns; nothing runs after that, unless a person was asked in time
---@field answer_by integer? ns; a person is asked, whose answer counts until then (a)
---@field kind mcp-tools.CallKind? (e)
---@field definition table? normalised (e)
---@field args table? (e), (g) puts back what the person saw
---@field timeout integer? ms that the tool has; 0 = any time (e)
---@field max_result integer? bytes of content that its result may have (e)
---@field leave? fun(call: mcp-tools.Call) called at the end, before the listener hears of it (e)
---@field room? fun(size: integer): mcp-tools.Error? why a result of so many bytes is not kept, if so (e)
---@field root string? of the project that it came in, wherever the person goes meanwhile (e)
---@field cwd string? (e)
---@field project string? the root, resolved, that it was decided for (g)
---@field targets mcp-tools.CallTarget[]? files that its arguments name, as they were decided on (g)
---@field snapshot table? of the arguments as they were decided on, for util/canonical_json.lua (g)
---@field decision { allowed: boolean, by: string }? (g)
---@field created_at integer ns, vim.uv.hrtime
---@field started_at integer? ns (i)
---@field ended_at integer? ns
---@field deadline integer? ns; nil while it has not started or waits for inputs, or without a limit (i)
---@field remaining integer? ns of its time that are left, while its clock stands
---@field questions mcp-tools.InputQuestion[]? what its client is to be asked; the first is the open one (q)
---@field inputs mcp-tools.Inputs? the open question as its client gets it (q)
---@field asked integer how many questions were open so far (q)
---@field withdrawn integer? `seq` of the last one that was taken back (q)
---@field latest mcp-tools.Progress?
---@field hint string? what may be wrong with its handler, for the timeout (i)
---@field trace string? of what its handler threw; never for clients (i)
---@field cancel_reason string? why the tool was told to stop
---@field outcome mcp-tools.Outcome?
---@field private timer mcp-tools.Timer? of its time
---@field private hooks (fun(reason: string))[]? of the tool, for a cancel or timeout
---@field private enders fun()[]? called at the end, whatever it is
local Call = {}
Call.__index = Call

--- Makes a call in the state `received`.
---@param fields { id?: string, name?: string, host: string, client?: table, session?: string, capabilities?: table,
---  listener?: mcp-tools.Listener, start_by?: integer, keep?: boolean }
---@param id? string in place of that of `fields`
---@param name? string likewise
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

--- Moves to the state that `event` leads to.
---@param event string
---@return boolean moved false when the table does not have it; then nothing has changed
function Call:move(event)
  local state = TRANSITIONS[self.state][event]
  if not state then
    return false
  end
  self.state = state
  return true
end

--- Has it ended?
---@return boolean
function Call:ended()
  return next(TRANSITIONS[self.state]) == nil
end

--- Has the time passed by which it had to begin? Then nothing of it may run: whoever asked for it may have been told
--- that nothing did.
---@return mcp-tools.Error? err
function Call:late()
  local by = self.start_by
  if by and self.answer_by then
    by = self.answer_by + ANSWER_GRACE
  end
  if by and uv.hrtime() > by then
    return errors.new('editor_blocked', 'the editor did not get to the call in time; nothing ran')
  end
end

--- Tells the listener, if it cares. A listener's error must not change what happens to the call.
---@param what 'started'|'progress'|'log'|'state'|'inputs'|'done'
function Call:tell(what, ...)
  local method = self.listener[what]
  if method then
    local ok, err = xpcall(method, debug.traceback, self.listener, self, ...)
    if not ok then
      log.error('call %s (%s): telling %s failed: %s', self.id, self.name, what, err)
    end
  end
end

--- Ends the call. The first end counts; a later one is logged and dropped.
---@param event 'finish'|'fail'|'time_out'|'cancel'
---@param outcome { value?: any, payload?: mcp-tools.Payload, error?: mcp-tools.Error }
---@return boolean ended by this
function Call:finish(event, outcome)
  if not self:move(event) then
    log.warn('call %s (%s): %s came when it was %s already; dropped', self.id, self.name, event, self.state)
    return false
  end
  self.ended_at = uv.hrtime()
  outcome.state = self.state
  self.outcome = outcome
  self:stop_clock()
  local hooks, enders = self.hooks, self.enders
  if hooks or enders or self.questions then -- else the table would grow by four keys without a value
    self.hooks, self.enders, self.questions, self.inputs = nil, nil, nil, nil
  end
  if hooks and (event == 'cancel' or event == 'time_out') then
    for _, hook in ipairs(vim.list_slice(hooks)) do
      self:run_hook(hook)
    end
  end
  for _, fn in ipairs(enders or {}) do
    log.guard(('call %s (%s): work at its end'):format(self.id, self.name), fn)
  end
  if self.leave then
    self.leave(self)
  end
  self:tell('done')
  return true
end

---@param hook fun(reason: string)
function Call:run_hook(hook)
  log.guard(('call %s (%s): its cancel hook'):format(self.id, self.name), hook, self.cancel_reason)
end

--- Ends it as failed.
---@param code mcp-tools.ErrorCode
---@param message string
---@param faults? mcp-tools.Fault[]
function Call:fail(code, message, faults)
  return self:finish('fail', { error = errors.new(code, message, faults) })
end

--- Ends it as cancelled and runs its hooks, so that the tool stops.
---@param reason string one of the wire's reasons
---@return boolean cancelled false when it had ended before
function Call:cancel(reason)
  if self:ended() then
    return false
  end
  self.cancel_reason = reason
  if reason == 'timeout' and TRANSITIONS[self.state].time_out then
    return self:finish('time_out', { error = errors.new('timeout', 'nobody came for it in time') })
  end
  local why = REASONS[reason] or reason
  return self:finish('cancel', { error = errors.new('cancelled', 'cancelled: ' .. why) })
end

--- Lets the tool's time run, or go on where it stood.
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

--- Stops the tool's time; what is left of it stays.
function Call:stop_clock()
  if self.deadline and not self:ended() then
    self.remaining, self.deadline = math.max(0, self.deadline - uv.hrtime()), nil
  end
  if self.timer then
    self.timer:stop()
    self.timer = nil
  end
end

--- Ends it because its time is up and runs its hooks.
---@param ms integer
function Call:time_out(ms)
  if self:ended() then
    return
  end
  self.cancel_reason = 'timeout'
  local text = 'no result within %d ms (the tool was told to stop); its timeout can be raised in its definition or by'
    .. ' the option bridge.tool_timeout'
  text = text:format(ms) .. (self.hint and '; ' .. self.hint or '')
  self:finish('time_out', { error = errors.new('timeout', text) })
end

--- Remembers a hook for a cancel or timeout; runs it at once when that has happened already.
---@param hook fun(reason: string)
---@return fun() forget
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

--- Calls `fn` at the end, whatever it is; at once when that has come already. It must not throw.
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

--- Notes progress and tells the listener. What JSON has no number for says nothing.
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
  self:tell('progress')
end

return M
