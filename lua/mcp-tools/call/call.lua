--- One call: its state, its single outcome, its progress and its cancel hooks.
---
--- Receives: events (start, finish, fail, cancel, …) from the executor and from the tool's `ctx`.
--- Sends: `started`, `progress`, `log`, `done` to its listener, each at most when the state allows it.
--- Does not know about: definitions, schemas, policy, channels, JSON.
---
--- The law: `TRANSITIONS` is the only place that says what may follow what. A move that is not in it changes nothing.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')

---@alias mcp-tools.CallState
---| 'received'          # found, not yet decided
---| 'waiting_approval'  # a person is being asked, by the client perhaps; the tool's time has not begun
---| 'running'           # the tool has it
---| 'waiting_input'     # the tool waits for its client; its time stands still
---| 'done' | 'failed' | 'timed_out' | 'cancelled'

local M = {}

--- state → event → next state
M.TRANSITIONS = {
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

---@class mcp-tools.Call
---@field id string
---@field name string the tool's name
---@field state mcp-tools.CallState
---@field host string
---@field client { name: string?, version: string? }
---@field session string?
---@field capabilities table
---@field kind mcp-tools.CallKind?
---@field definition table? normalised
---@field args table?
---@field snapshot table? of the arguments as they were decided on, for util/canonical_json.lua
---@field decision { allowed: boolean, by: string }? of the gateway
---@field project string? root that it was decided for
---@field places mcp-tools.Place[]? files that its arguments name, as they were decided on
---@field created_at integer ns, vim.uv.hrtime
---@field started_at integer? ns
---@field ended_at integer? ns
---@field deadline integer? ns; nil while it has not started or waits for inputs, or without a limit
---@field remaining integer? ns of its time that are left, while its clock stands
---@field inputs mcp-tools.Inputs? while it waits for them
---@field withdrawn integer? `seq` of the last inputs that were taken back
---@field outcome mcp-tools.Outcome?
---@field latest mcp-tools.Progress?
---@field listener mcp-tools.Listener
---@field leave? fun(call: mcp-tools.Call) its executor's, called at the end
---@field keep? boolean the outcome is kept until acknowledged
local Call = {}
Call.__index = Call

--- Makes a call in the state `received`.
---@param fields { id: string, name: string, host: string, client?: table, session?: string, capabilities?: table,
---  listener?: mcp-tools.Listener }
---@return mcp-tools.Call
function M.new(fields)
  return setmetatable({
    id = fields.id,
    name = fields.name,
    state = 'received',
    host = fields.host,
    client = fields.client or {},
    session = fields.session,
    capabilities = fields.capabilities or {},
    listener = fields.listener or {},
    created_at = vim.uv.hrtime(),
  }, Call)
end

--- Moves to the state that `event` leads to.
---@param event string
---@return boolean moved false when the table does not have it; then nothing has changed
function Call:move(event)
  local state = M.TRANSITIONS[self.state][event]
  if not state then
    return false
  end
  self.state = state
  return true
end

--- Has it ended?
---@return boolean
function Call:ended()
  return next(M.TRANSITIONS[self.state]) == nil
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
  self.ended_at = vim.uv.hrtime()
  outcome.state = self.state
  self.outcome = outcome
  self:stop_clock()
  local hooks = self.hooks
  self.hooks, self.questions, self.inputs = nil, nil, nil
  if hooks and (event == 'cancel' or event == 'time_out') then
    for _, hook in ipairs(hooks) do
      self:run_hook(hook)
    end
  end
  if self.leave then
    self.leave(self)
  end
  self:tell('done')
  return true
end

---@param hook fun(reason: string)
function Call:run_hook(hook)
  local ok, err = xpcall(hook, debug.traceback, self.cancel_reason)
  if not ok then
    log.error('call %s (%s): its cancel hook failed: %s', self.id, self.name, err)
  end
end

--- Ends it as failed.
---@param code mcp-tools.ErrorCode
---@param message string
---@param faults? mcp-tools.Fault[]
function Call:fail(code, message, faults)
  return self:finish('fail', { error = errors.new(code, message, faults) })
end

local REASONS = {
  client = 'the client cancelled it',
  disconnected = 'the client disconnected',
  session_closed = 'the session was closed',
  client_gone = 'the client has been silent and without a connection for too long',
  bridge_gone = 'the bridge ended',
  shutdown = 'the bridge is shutting down',
  user = 'the person at the editor cancelled it',
  timeout = 'its time was up',
  blocked = 'the editor did not get to it in time',
}

--- Ends it as cancelled and runs its hooks, so that the tool stops.
---@param reason string one of the wire's reasons
---@return boolean cancelled false when it had ended before
function Call:cancel(reason)
  if self:ended() then
    return false
  end
  self.cancel_reason = reason
  if reason == 'timeout' and M.TRANSITIONS[self.state].time_out then
    return self:finish('time_out', { error = errors.new('timeout', 'nobody came for it in time') })
  end
  return self:finish('cancel', { error = errors.new('cancelled', 'cancelled: ' .. (REASONS[reason] or reason)) })
end

--- Lets the tool's time run, or go on where it stood.
function Call:start_clock()
  if not self.remaining or self.state ~= 'running' then
    return
  end
  self.deadline = vim.uv.hrtime() + self.remaining
  local timer = vim.uv.new_timer()
  self.timer = timer
  timer:start(
    math.ceil(self.remaining / 1e6),
    0,
    vim.schedule_wrap(function()
      if self.timer == timer then -- it may have been stopped since
        self:time_out(self.timeout)
      end
    end)
  )
  self.remaining = nil
end

--- Stops the tool's time; what is left of it stays.
function Call:stop_clock()
  if self.deadline and not self:ended() then
    self.remaining, self.deadline = math.max(0, self.deadline - vim.uv.hrtime()), nil
  end
  if self.timer then
    self.timer:stop()
    self.timer:close()
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
  self:finish('time_out', { error = errors.new('timeout', text:format(ms)) })
end

--- Remembers a hook for a cancel or timeout; runs it at once when that has happened already.
---@param hook fun(reason: string)
function Call:on_cancel(hook)
  if self.cancel_reason and self:ended() then
    return self:run_hook(hook)
  end
  self.hooks = self.hooks or {}
  table.insert(self.hooks, hook)
end

--- Notes progress and tells the listener.
---@param done number
---@param total? number
---@param message? string
---@param state? string JSON text
function Call:progress(done, total, message, state)
  if self:ended() then
    return
  end
  local seq = self.latest and self.latest.seq + 1 or 1
  self.latest = { seq = seq, done = done, total = total, message = message, state = state }
  self:tell('progress')
end

return M
