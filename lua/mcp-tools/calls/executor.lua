--- The single path by which every host runs tools, resources, prompts and completions.
---
--- Order: not used before → not too late → room → known → arguments → gateway → handler.

local Call = require('mcp-tools.calls.call')
local errors = require('mcp-tools.errors')
local invoke = require('mcp-tools.calls.invoke')
local kinds = require('mcp-tools.calls.kinds')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local timer = require('mcp-tools.util.timer')

local uv = vim.uv

local M = {}

--- Ids that are remembered at least, of calls that were cancelled before they came, and of those that came and were
--- forgotten: a request that comes late is refused.
local CANCELLED, USED = 256, 1024
--- Sessions whose `state` is kept; well above `limits.sessions`, since a session may be revived.
local SESSIONS = 256
--- Bytes of all results together that wait to be taken. One alone may have any size that limits.tool_result allows.
local MAX_KEPT = 128 * 1024 * 1024

--- The last ids, in two generations: when the younger is full, the older is dropped as a whole. (After single keys were
--- removed from a full table, each new one would cost a look at all.)
---@class mcp-tools.UsedIds
---@field size integer
---@field young table<string, true>
---@field old table<string, true>
---@field count integer of the young ones

---@param size integer
---@return mcp-tools.UsedIds
local function new_ids(size)
  return { size = size, young = {}, old = {}, count = 0 }
end

---@param ids mcp-tools.UsedIds
---@param id string
---@return boolean
local function has_id(ids, id)
  return ids.young[id] ~= nil or ids.old[id] ~= nil
end

---@param ids mcp-tools.UsedIds
---@param id string
local function add_id(ids, id)
  if ids.young[id] then
    return
  elseif ids.count == ids.size then
    ids.young, ids.old, ids.count = {}, ids.young, 0
  end
  ids.young[id], ids.count = true, ids.count + 1
end

---@class mcp-tools.Settings what the executor reads of the options
---@field tool_timeout integer ms; 0 = none
---@field max_calls integer
---@field max_result integer bytes
---@field max_resource integer bytes
---@field result_ttl integer ms that a result waits to be taken

---@class mcp-tools.Executor
---@field registry mcp-tools.Registry
---@field calls table<string, mcp-tools.Call> running ones, and ended ones until acknowledged
---@field active integer calls that have not ended
---@field settings fun(): mcp-tools.Settings
---@field root fun(): string
---@field private gateway mcp-tools.Gateway
---@field private states table<string, { used_at: integer, made: table<function, table> }> by session
---@field private timer mcp-tools.Timer? due with the oldest kept result
---@field private cancelled mcp-tools.UsedIds
---@field private used mcp-tools.UsedIds
---@field private counter integer of ids
---@field private watchers (fun(call: mcp-tools.Call))[]
---@field private leave fun(call: mcp-tools.Call)
---@field private room fun(size: integer): mcp-tools.Error?
local Executor = {}
Executor.__index = Executor

--- Makes an executor over a registry.
---@param opts { registry: mcp-tools.Registry, gateway: mcp-tools.Gateway, settings: (fun(): mcp-tools.Settings),
---  root: (fun(): string)?, audit: fun(call: mcp-tools.Call)? } `root` is that of the project (default: the
---  editor's); `audit` is told of calls that were decided on, when they end
---@return mcp-tools.Executor
function M.new(opts)
  local self = setmetatable({
    registry = opts.registry,
    gateway = opts.gateway,
    settings = opts.settings,
    root = opts.root or project.root,
    calls = {},
    active = 0,
    states = {},
    cancelled = new_ids(CANCELLED),
    used = new_ids(USED),
    counter = 0,
    watchers = {},
  }, Executor)
  self.room = function(size)
    return self:no_room(size)
  end
  self.leave = function(call)
    self.active = self.active - 1
    if call.decision and opts.audit then
      opts.audit(call)
    end
    self:tell_watchers(call)
    if call.keep then
      self:sweep_later(call.ended_at)
    else
      self:forget(call.id)
    end
  end
  return self
end

--- A new id for a call of this editor (hosts that have none of their own).
---@return string
function Executor:next_id()
  self.counter = self.counter + 1
  return ('lua-%d'):format(self.counter)
end

---@class mcp-tools.ExecuteOptions
---@field id string? the caller's id; never used twice
---@field kind ('tool'|'resource'|'prompt'|'completion')? what the name is the name of (default a tool)
---@field host string
---@field start_by integer? ns; refused when it has passed
---@field timeout integer? ms, for tools that set none; 0 = none
---@field limit integer? ms, for every tool: it has no more than that
---@field client table?
---@field session string?
---@field capabilities table?
---@field view mcp-tools.View? what the client sees of the tools; all of them when left out
---@field listener mcp-tools.Listener?
---@field exact_args boolean? empty tables among the arguments say whether they are arrays or objects
---@field keep boolean? keep the outcome until `acknowledge` (else it is forgotten when the listener was told)

--- Runs a tool, or what else `opts.kind` says.
---@param name string of a tool: published or bare
---@param args table? owned by the call from now on
---@param opts mcp-tools.ExecuteOptions
---@return mcp-tools.Call call ended already when the tool answered at once
function Executor:execute(name, args, opts)
  local call = Call.new(opts, opts.id or self:next_id(), name)
  local refused = self:refusal(call)
  if refused then
    call:finish('fail', { error = refused })
    return call
  end
  local settings = self.settings()
  if self.active >= settings.max_calls then
    call:fail(
      'busy',
      ('%d calls are in flight (option limits.calls); try again when one has ended'):format(self.active)
    )
    return call
  end
  local kind = kinds[opts.kind or 'tool'] or error(('there are no calls of the kind %s'):format(tostring(opts.kind)))
  call.kind = kind
  if opts.view and opts.view.companion and kind ~= kinds.tool then
    call:fail('not_found', 'an agent that came in as a companion has its own tools, and nothing else')
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
  kind.decide(self.gateway, call, function(allowed, denial)
    if call:ended() then
      return
    end
    if not allowed then
      return call:finish('fail', { error = denial })
    end
    local made, state = self:state_of(call)
    if made then
      invoke.start(call, state)
    end
  end)
  return call
end

--- Why a call must not begin, if so.
---@param call mcp-tools.Call
---@return mcp-tools.Error?
function Executor:refusal(call)
  local id, other = call.id, self.calls[call.id]
  if other and not other:ended() then
    return errors.new('cancelled', ('the call %s runs already; nothing runs twice'):format(id))
  elseif other or has_id(self.used, id) or has_id(self.cancelled, id) then
    return errors.new('cancelled', ('the call %s was answered or cancelled before; nothing ran'):format(id))
  end
  return call:late()
end

--- Takes a call into the table; `leave` takes it out again at its end.
---@param call mcp-tools.Call
function Executor:enter(call)
  self.calls[call.id] = call
  call.root, call.cwd = self.root(), uv.cwd() or vim.fn.getcwd()
  self.active = self.active + 1
  call.leave = self.leave
  call.room = call.keep and self.room or nil
  self:tell_watchers(call)
end

---@private
---@param call mcp-tools.Call
function Executor:tell_watchers(call)
  for i = 1, #self.watchers do
    log.guard('a watcher of calls', self.watchers[i], call)
  end
end

--- Calls `fn` with every call that comes in, and again when it has ended. It is on the way of each: `fn` takes note,
--- and does no more.
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

--- Why one more result of `size` bytes is not kept, if so: nobody takes those that there are.
---@param size integer
---@return mcp-tools.Error?
function Executor:no_room(size)
  local kept = 0
  for _, call in pairs(self.calls) do
    local payload = call.outcome and call.outcome.payload
    kept = kept + (payload and payload.text and #payload.text or 0)
  end
  if kept > 0 and kept + size > MAX_KEPT then
    local text = 'the tool has run, but its result of %d bytes cannot be kept: %d bytes of other results wait to be'
      .. ' taken, and all together may have %d; ask for less at a time, or later'
    return errors.new('busy', text:format(size, kept, MAX_KEPT))
  end
end

--- The arguments of a call, checked; fails the call when they do not fit, and when the check throws.
---@param call mcp-tools.Call
---@param args any
---@param exact boolean?
---@return table? value
function Executor:arguments_of(call, args, exact)
  local ok, value, err = xpcall(call.kind.arguments, debug.traceback, call.definition, args, exact)
  if not ok then
    log.error('call %s (%s): the check of its arguments failed: %s', call.id, call.name, value)
    call:fail('execution_error', 'its arguments could not be checked; see the log')
  elseif not value then
    call:finish('fail', { error = err })
  end
  return ok and value or nil
end

--- What a definition's `state()` made for a session, or makes now. Without a session it lasts for one call; a tool that
--- was loaded again has a new function and so a new state.
---@private
---@param make fun(): table
---@param session string?
---@return table
function Executor:session_state(make, session)
  if not session then
    return make()
  end
  local kept = self.states[session]
  if not kept then
    kept = { made = setmetatable({}, { __mode = 'k' }), used_at = 0 }
    if vim.tbl_count(self.states) >= SESSIONS then -- nobody says when a session ends
      local oldest
      for name, other in pairs(self.states) do
        oldest = (not oldest or other.used_at < self.states[oldest].used_at) and name or oldest
      end
      self.states[oldest] = nil
    end
    self.states[session] = kept
  end
  kept.used_at = uv.hrtime()
  kept.made[make] = kept.made[make] or make()
  return kept.made[make]
end

--- The `state` of a call; fails the call when making it throws.
---@param call mcp-tools.Call
---@return boolean made
---@return table? state
function Executor:state_of(call)
  local make = call.definition.state
  if not make then
    return true
  end
  local what = ('call %s (%s): its state()'):format(call.id, call.name)
  local ok, state = log.guard(what, self.session_state, self, make, call.session)
  if not ok then
    call:fail('execution_error', 'Tool execution error: its state() threw; see the log')
    return false
  end
  return true, state
end

--- Cancels a call; the tool's hooks run. An id not yet known is remembered, so a request that comes later is refused.
---@param id string
---@param reason string
---@return boolean cancelled
function Executor:cancel(id, reason)
  local call = self.calls[id]
  if call then
    return call:cancel(reason)
  end
  add_id(self.cancelled, id)
  return false
end

--- Takes a call out of the table; its id is not used again.
---@param id string
function Executor:forget(id)
  self.calls[id] = nil
  add_id(self.used, id)
end

--- Forgets results that nobody came for, when their time is up.
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

--- One timer for all kept results, due with the oldest.
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

--- Forgets ended calls whose outcome has arrived.
---@param ids string[]
function Executor:acknowledge(ids)
  for _, id in ipairs(ids) do
    local call = self.calls[id]
    if call and call:ended() then
      self:forget(id)
    end
  end
end

--- Forgets outcomes that nobody can come for any more.
---@param match fun(call: mcp-tools.Call): boolean
function Executor:forget_where(match)
  for id, call in pairs(self.calls) do
    if call:ended() and match(call) then
      self:forget(id)
    end
  end
end

--- Calls that have not ended, oldest first.
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
