--- The single path by which every caller runs tools, resources, prompts and completions.
---
--- Order: id is new → not late → below limits.calls → definition → arguments → approval → handler.

local Call = require('mcp-tools.calls.call')
local Ctx = require('mcp-tools.calls.ctx')
local errors = require('mcp-tools.errors')
local kinds = require('mcp-tools.calls.kinds')
local log = require('mcp-tools.log')
local lru = require('mcp-tools.util.lru')
local project = require('mcp-tools.instances.project')
local source = require('mcp-tools.registry.source')
local timer = require('mcp-tools.util.timer')

local uv = vim.uv

local M = {}

--- Minimum number of ids that are remembered (see util/lru): of calls that were cancelled before their request arrived,
--- and of calls that ended and were removed. A request with such an id is refused.
local CANCELLED, USED = 256, 1024
--- Minimum number of sessions whose `state` is kept: the end of a session is not reported here. Well above
--- `limits.sessions`, because a session may be resumed.
local SESSIONS = 256
--- Maximum bytes of all results that are kept for clients. A single result may have any size below limits.tool_result.
local MAX_KEPT = 128 * 1024 * 1024

--- Maximum numbers in a history: calls, durations of each tool, and names of tools or sessions.
local CALLS, TIMES, NAMES = 50, 16, 500
--- Maximum bytes of a client's name in a history.
local MAX_NAME = 200

---@param name any
---@return string
local function name_of(name)
  return tostring(name):sub(1, MAX_NAME)
end

---@class mcp-tools.PastCall
---@field id string
---@field name string
---@field client string
---@field state 'done'|'failed'|'timed_out'|'cancelled'
---@field code? mcp-tools.ErrorCode if it is not done
---@field ms number from arrival to end
---@field ended_at integer ns

---@class mcp-tools.History
---@field note fun(call: mcp-tools.Call)
---@field list fun(count: integer): mcp-tools.PastCall[] newest first
---@field times fun(name: string): number[] ms, oldest first
---@field last_of fun(session: string): integer? ns, when the last call of a session arrived or ended

--- Creates an empty history.
---@return mcp-tools.History
local function new_history()
  local calls = {} ---@type mcp-tools.PastCall[] newest first
  local times, seen = lru(NAMES), lru(NAMES) -- there may be any number of them
  local self = {}

  function self.note(call)
    local client = name_of(call.client.name or call.host)
    seen:set(name_of(call.session or client), call.ended_at or call.created_at)
    -- Calls on an agent's own channel, such as `closeAllDiffTabs`, would displace all others.
    if not call.ended_at or call.definition and call.definition.agent then
      return
    end
    local ms = (call.ended_at - call.created_at) / 1e6
    table.insert(calls, 1, {
      id = call.id,
      name = call.name,
      client = client,
      state = call.outcome.state,
      code = call.outcome.error and call.outcome.error.code,
      ms = ms,
      ended_at = call.ended_at,
    })
    calls[CALLS + 1] = nil
    local durations = times:get(call.name) or {}
    times:set(call.name, durations)
    durations[#durations + 1] = ms
    if #durations > TIMES then
      table.remove(durations, 1)
    end
  end

  function self.list(count)
    return vim.list_slice(calls, 1, count)
  end

  function self.times(name)
    return times:get(name) or {}
  end

  function self.last_of(session)
    return seen:get(name_of(session))
  end

  return self
end

---@class mcp-tools.Settings options that the executor uses
---@field tool_timeout integer ms; 0 = none
---@field max_calls integer
---@field max_result integer bytes
---@field max_resource integer bytes
---@field result_ttl integer ms that a result is kept for its client

---@class mcp-tools.Executor
---@field registry mcp-tools.Registry
---@field calls table<string, mcp-tools.Call> by id: running, or ended and not yet acknowledged
---@field active integer number of calls that have not ended
---@field settings fun(): mcp-tools.Settings
---@field root fun(): string
---@field history mcp-tools.History
---@field private gateway mcp-tools.Gateway
---@field private states mcp-tools.Lru session → name of a tool → its state and the function that made it
---@field private timer mcp-tools.Timer? fires when the oldest kept result expires
---@field private cancelled mcp-tools.Lru by id
---@field private used mcp-tools.Lru by id
---@field private counter integer last number used in an id
---@field private watchers (fun(call: mcp-tools.Call))[]
---@field private leave fun(call: mcp-tools.Call)
---@field private capacity_error fun(size: integer): mcp-tools.Error?
local Executor = {}
Executor.__index = Executor

--- Creates an executor for a registry.
---@param opts { registry: mcp-tools.Registry, gateway: mcp-tools.Gateway, settings: (fun(): mcp-tools.Settings),
---  root: (fun(): string)?, audit: fun(call: mcp-tools.Call)? } `root` returns the project root (default: the
---  editor's); `audit` is called at the end of each call that was approved or denied
---@return mcp-tools.Executor
function M.new(opts)
  local self = setmetatable({
    registry = opts.registry,
    gateway = opts.gateway,
    settings = opts.settings,
    root = opts.root or project.root,
    calls = {},
    active = 0,
    states = lru(SESSIONS),
    cancelled = lru(CANCELLED),
    used = lru(USED),
    counter = 0,
    watchers = {},
  }, Executor)
  self.history = new_history()
  self:watch(self.history.note)
  self.capacity_error = function(size)
    local kept = 0
    for _, call in pairs(self.calls) do
      local payload = call.outcome and call.outcome.payload
      kept = kept + (payload and payload.text and #payload.text or 0)
    end
    if kept > 0 and kept + size > MAX_KEPT then
      local text = 'the tool ran, but its result of %d bytes cannot be kept: %d of %d bytes are in use by results that'
        .. ' no client has fetched yet. Request less data, or try again later'
      return errors.new('busy', text:format(size, kept, MAX_KEPT))
    end
  end
  self.leave = function(call)
    self.active = self.active - 1
    if call.decision and opts.audit then
      opts.audit(call)
    end
    self:notify_watchers(call)
    if call.keep then
      self:sweep_later(call.ended_at)
    else
      self:forget(call.id)
    end
  end
  return self
end

--- Returns a new id, for callers that do not have their own.
---@return string
function Executor:next_id()
  self.counter = self.counter + 1
  return ('lua-%d'):format(self.counter)
end

---@class mcp-tools.ExecuteOptions
---@field id string? the caller's id; an id is refused the second time
---@field kind ('tool'|'resource'|'prompt'|'completion')? default 'tool'
---@field host string
---@field start_by integer? ns; the call is refused after this time
---@field timeout integer? ms, for tools without a `timeout`; 0 = none
---@field limit integer? ms, upper limit for every timeout
---@field client table?
---@field session string?
---@field capabilities table?
---@field view mcp-tools.View? the client's scope (default: all tools)
---@field listener mcp-tools.Listener?
---@field exact_args boolean? empty tables in `args` are marked as arrays or objects
---@field keep boolean? keep the outcome until `acknowledge`; otherwise it is dropped after the listener's `done`

--- Starts a call of a tool, or of the kind that `opts.kind` names.
---@param name string of a tool (published or bare) or prompt, or the URI of a resource
---@param args table? owned by the call from now on
---@param opts mcp-tools.ExecuteOptions
---@return mcp-tools.Call call already ended if the handler answered synchronously
function Executor:execute(name, args, opts)
  local call = Call.new(opts, opts.id or self:next_id(), name)
  local refused = self:start_error(call)
  if refused then
    call:finish('fail', { error = refused })
    return call
  end
  local settings = self.settings()
  if self.active >= settings.max_calls then
    call:fail('busy', ('%d calls are running (option limits.calls); try again when one has ended'):format(self.active))
    return call
  end
  local kind = kinds[opts.kind or 'tool'] or error(("kind: unknown kind of call '%s'"):format(tostring(opts.kind)))
  call.kind = kind
  if opts.view and opts.view.agent and kind ~= kinds.tool then
    call:fail('not_found', "a terminal agent's connection has only the agent's tools")
    return call
  end
  local definition, unknown, inner = kind.find(self.registry, name, args, opts.view)
  if not definition then
    call:finish('fail', { error = unknown })
    return call
  end
  call.definition, call.name = definition, definition.label or definition.name
  local ms, limit = definition.timeout or opts.timeout or settings.tool_timeout, opts.limit
  call.timeout = limit and (ms == 0 or limit < ms) and limit or ms
  call.max_result = settings[kind.limit]
  self:enter(call)
  call.args = self:arguments_of(call, inner or args, opts.exact_args)
  if not call.args then
    return call
  end
  local function decided(allowed, denial)
    if call:ended() then
      return
    end
    if not allowed then
      return call:finish('fail', { error = denial })
    end
    local ok, state = self:state_of(call)
    if ok then
      Ctx.start(call, state)
    end
  end
  if kind == kinds.tool or source.is_mounted(definition) then
    self.gateway:decide(call, decided)
  else
    decided(true) -- our resources and prompts only read, and check access to files themselves
  end
  return call
end

--- Returns why a call must not start: its id was used before, or it is late.
---@param call mcp-tools.Call
---@return mcp-tools.Error?
function Executor:start_error(call)
  local id, other = call.id, self.calls[call.id]
  if other and not other:ended() then
    return errors.new('cancelled', ('the call %s is already running; it was not started again'):format(id))
  elseif other or self.used:get(id) or self.cancelled:get(id) then
    return errors.new('cancelled', ('the call %s was already answered or cancelled; nothing ran'):format(id))
  end
  return call:late()
end

--- Adds a call to the table; `leave` removes it at its end.
---@param call mcp-tools.Call
function Executor:enter(call)
  self.calls[call.id] = call
  call.root, call.cwd = self.root(), uv.cwd() or vim.fn.getcwd()
  self.active = self.active + 1
  call.leave = self.leave
  call.capacity_error = call.keep and self.capacity_error or nil
  self:notify_watchers(call)
end

---@private
---@param call mcp-tools.Call
function Executor:notify_watchers(call)
  for i = 1, #self.watchers do
    log.guard('a watcher of calls', self.watchers[i], call)
  end
end

--- Calls `fn` with every call when it arrives and when it has ended. It runs synchronously, so `fn` must be quick.
---@param fn fun(call: mcp-tools.Call)
---@return fun() stop
function Executor:watch(fn)
  table.insert(self.watchers, fn)
  return function()
    self.watchers = vim.tbl_filter(function(other)
      return other ~= fn
    end, self.watchers)
  end
end

--- Returns the checked arguments of a call. Fails the call if they are invalid or the check throws.
---@param call mcp-tools.Call
---@param args any
---@param exact boolean?
---@return table? value
function Executor:arguments_of(call, args, exact)
  local ok, value, err = xpcall(call.kind.arguments, debug.traceback, call.definition, args, exact)
  if not ok then
    log.error('call %s (%s): checking the arguments failed: %s', call.id, call.name, value)
    call:fail('execution_error', 'the arguments could not be checked; see the log')
  elseif not value then
    call:finish('fail', { error = err })
  end
  return ok and value or nil
end

--- Returns the `state` of a call: what the definition's `state()` returned for this session, or without a session for
--- this call. Fails the call if it throws. A reloaded tool has a new function and therefore a new state.
---@private
---@param call mcp-tools.Call
---@return boolean ok
---@return table? state
function Executor:state_of(call)
  local definition, session = call.definition, call.session
  local make = definition.state
  if not make then
    return true
  end
  local states = session and self.states:get(session) or {}
  local state = states[definition.name]
  if not state or state.make ~= make then
    local ok, made = log.guard(('call %s (%s): its state()'):format(call.id, call.name), make)
    if not ok then
      call:fail('execution_error', 'Tool execution error: its state() threw; see the log')
      return false
    end
    state = { make = make, value = made }
    states[definition.name] = state
  end
  if session then
    self.states:set(session, states)
  end
  return true, state.value
end

--- Cancels a call and runs its cancel hooks. An unknown id is remembered, so that a request that arrives later is
--- refused.
---@param id string
---@param reason string
---@return boolean cancelled
function Executor:cancel(id, reason)
  local call = self.calls[id]
  if call then
    return call:cancel(reason)
  end
  self.cancelled:set(id, true)
  return false
end

--- Removes a call from the table; a new call with its id is refused.
---@param id string
function Executor:forget(id)
  self.calls[id] = nil
  self.used:set(id, true)
end

--- Removes results that no client has fetched within `result_ttl`.
function Executor:sweep()
  local due, oldest = uv.hrtime() - self.settings().result_ttl * 1e6, nil
  for id, call in pairs(self.calls) do
    local ended_at = call.ended_at
    if ended_at and ended_at <= due then
      self:forget(id)
    elseif ended_at and (not oldest or ended_at < oldest) then
      oldest = ended_at
    end
  end
  if oldest then
    self:sweep_later(oldest)
  end
end

--- Starts the timer for all kept results, unless it runs.
---@private
---@param ended_at integer ns
function Executor:sweep_later(ended_at)
  if not self.timer then
    local ns = ended_at + self.settings().result_ttl * 1e6 - uv.hrtime()
    self.timer = timer.after(math.max(0, ns / 1e6), function()
      self.timer = nil
      self:sweep()
    end)
  end
end

---@param id string
---@return mcp-tools.Call?
function Executor:get(id)
  return self.calls[id]
end

--- Removes ended calls whose outcome has reached the client.
---@param ids string[]
function Executor:acknowledge(ids)
  for _, id in ipairs(ids) do
    local call = self.calls[id]
    if call and call:ended() then
      self:forget(id)
    end
  end
end

--- Removes ended calls that `match` accepts: no client can fetch their outcome any more.
---@param match fun(call: mcp-tools.Call): boolean
function Executor:forget_where(match)
  for id, call in pairs(self.calls) do
    if call:ended() and match(call) then
      self:forget(id)
    end
  end
end

--- Returns the calls that have not ended, oldest first.
---@return mcp-tools.Call[]
function Executor:pending()
  local list = {}
  for _, call in pairs(self.calls) do
    if not call:ended() then
      list[#list + 1] = call
    end
  end
  table.sort(list, function(a, b)
    return a.created_at < b.created_at
  end)
  return list
end

--- Cancels every call that `match` accepts.
---@param match fun(call: mcp-tools.Call): boolean
---@param reason string
function Executor:cancel_where(match, reason)
  for _, call in ipairs(self:pending()) do
    if match(call) then
      call:cancel(reason)
    end
  end
end

return M
