--- Supervisor of the bridge: one process at a time, restarted with back-off.

local Process = require('mcp-tools.bridge.process')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local timer = require('mcp-tools.util.timer')

---@alias mcp-tools.bridge.State
---| 'stopped' not wanted, nothing runs
---| 'starting' a process runs, or its command is being looked up
---| 'ready' the process listens
---| 'waiting' the process crashed; the next attempt follows
---| 'stopping' not wanted, the process is ending; `start()` starts the next one after it
---| 'failed' no further attempts; `last_error` says why

---@class mcp-tools.bridge.Watcher
---@field on_ready? fun(port: integer)
---@field on_stop? fun()

---@class mcp-tools.bridge.SupervisorOpts
---@field launch fun(done: fun(spec: mcp-tools.bridge.ProcessSpec?, err: string?)) called before each start
---@field on_state? fun(state: mcp-tools.bridge.State)
---@field on_give_up? fun(err: string)
---@field backoff? integer delay of the first retry in ms, doubled for each further one
---@field stable? integer time in ms after which earlier crashes are forgotten

---@class mcp-tools.bridge.Supervisor
---@field state mcp-tools.bridge.State
---@field process? mcp-tools.bridge.Process the current one
---@field port? integer nil until ready
---@field tries integer restarts since the process last ran stably
---@field last_error? string
---@field private _launch fun(done: fun(spec: mcp-tools.bridge.ProcessSpec?, err: string?))
---@field private _on_state fun(state: mcp-tools.bridge.State)
---@field private _on_give_up fun(err: string)
---@field private _backoff integer
---@field private _stable integer
---@field private _watchers mcp-tools.bridge.Watcher[] of the current bridge, or of the next one if none runs
---@field private _next mcp-tools.bridge.Watcher[] of the bridge that follows the one that is ending
---@field private _stop_waiters fun()[]
local Supervisor = {}
Supervisor.__index = Supervisor

local MAX_TRIES = 5
-- Delays of 0.25, 0.5, 1, 2 and 4 s: a bridge that cannot run is reported within eight seconds.
local BACKOFF = 250
local STABLE = 60000

---@param opts mcp-tools.bridge.SupervisorOpts
---@return mcp-tools.bridge.Supervisor
function Supervisor.new(opts)
  return setmetatable({
    state = 'stopped',
    tries = 0,
    _launch = opts.launch,
    _on_state = opts.on_state or function() end,
    _on_give_up = opts.on_give_up or function() end,
    _backoff = opts.backoff or BACKOFF,
    _stable = opts.stable or STABLE,
    _generation = 0,
    _again = false,
    _watchers = {},
    _next = {},
    _stop_waiters = {},
  }, Supervisor)
end

---@param state mcp-tools.bridge.State
function Supervisor:_set(state)
  if self.state ~= state then
    log.debug('bridge: %s -> %s', self.state, state)
    self.state = state
    self._on_state(state)
  end
end

---@param ms integer
---@param fn fun()
function Supervisor:_after(ms, fn)
  self:_clear_timer()
  self._timer = timer.after(ms, function()
    self._timer = nil
    fn()
  end)
end

function Supervisor:_clear_timer()
  if self._timer then
    self._timer:stop()
    self._timer = nil
  end
end

--- Calls a foreign function; logs and shows its error.
---@param what string
---@param fn? function
---@param ... any
local function call_guarded(what, fn, ...)
  local ok, err = true, nil
  if fn then
    ok, err = log.guard(what, fn, ...)
  end
  if not ok then
    notify.error(('%s failed: %s'):format(what, tostring(err):match('[^\n]*')))
  end
end

---@param port integer
function Supervisor:_notify_ready(port)
  for _, watcher in ipairs(vim.list_slice(self._watchers)) do
    local on_ready = watcher.on_ready
    watcher.on_ready = nil
    call_guarded('on_ready', on_ready, port)
  end
end

--- Calls `on_stop` of the ended bridge's watchers; those of the next bridge stay.
---@param later? boolean call on the next turn of the main loop
function Supervisor:_notify_stopped(later)
  local ended, waiters = self._watchers, self._stop_waiters
  self._watchers, self._next, self._stop_waiters = self._next, {}, {}
  local function notify_all()
    for _, watcher in ipairs(ended) do
      call_guarded('on_stop', watcher.on_stop)
    end
    for _, waiter in ipairs(waiters) do
      call_guarded('stop callback', waiter)
    end
  end
  if later then
    vim.schedule(notify_all)
  else
    notify_all()
  end
end

--- Starts the bridge if it does not run. Calls each watcher's `on_ready` once when it is ready, and its `on_stop` once
--- when it has ended or could not start.
---@param ... mcp-tools.bridge.Watcher
function Supervisor:start(...)
  for _, watcher in ipairs({ ... }) do
    local list = self.state == 'stopping' and self._next or self._watchers
    table.insert(list, { on_ready = watcher.on_ready, on_stop = watcher.on_stop })
  end
  if self.state == 'ready' then
    vim.schedule(function()
      if self.state == 'ready' then
        self:_notify_ready(self.port)
      end
    end)
  elseif self.state == 'stopping' then
    self._again = true
  elseif self.state == 'stopped' or self.state == 'failed' then
    self.tries, self.last_error = 0, nil
    self:_start_process()
  end
end

function Supervisor:_start_process()
  self._generation = self._generation + 1
  local generation = self._generation
  self:_set('starting')
  self._launch(function(spec, err)
    if generation ~= self._generation then
      return -- stopped or restarted while the command was looked up
    end
    if not spec then
      self:_give_up(err or 'no command')
      return
    end
    local process, spawn_err = Process.spawn(spec, {
      on_ready = function(process, port)
        self:_process_ready(process, port)
      end,
      on_exit = function(process, fault)
        self:_process_exited(process, fault)
      end,
    })
    self.process = process
    if not process then
      self:_give_up(spawn_err or 'the process cannot be started')
    end
  end)
end

---@param process mcp-tools.bridge.Process
---@param port integer
function Supervisor:_process_ready(process, port)
  if process ~= self.process or self.state ~= 'starting' then
    return
  end
  self.port = port
  self:_set('ready')
  self:_after(self._stable, function()
    self.tries = 0
  end)
  self:_notify_ready(port)
end

---@param process mcp-tools.bridge.Process
---@param fault? string
function Supervisor:_process_exited(process, fault)
  if process ~= self.process then
    return
  end
  self.process, self.port = nil, nil
  self:_clear_timer()
  if self.state == 'stopping' then
    self:_stopped()
  else
    self:_crashed(fault or 'the process ended')
  end
end

---@param fault string
function Supervisor:_crashed(fault)
  self.last_error = fault
  if self.tries >= MAX_TRIES then
    self:_give_up(fault)
    return
  end
  self.tries = self.tries + 1
  local delay = self._backoff * 2 ^ (self.tries - 1)
  log.warn('bridge: %s; retry %d of %d in %g s', fault, self.tries, MAX_TRIES, delay / 1000)
  self:_set('waiting')
  self:_after(delay, function()
    self:_start_process()
  end)
end

---@param err string
function Supervisor:_give_up(err)
  self.last_error = err
  self:_set('failed')
  self._on_give_up(err)
  self:_notify_stopped(true) -- `start()` may still be running
end

---@param later? boolean notify the watchers on the next turn of the main loop
function Supervisor:_stopped(later)
  self:_set('stopped')
  self:_notify_stopped(later)
  if self._again then
    self._again = false
    if self.state == 'stopped' then
      self.tries, self.last_error = 0, nil
      self:_start_process()
    end
  end
end

--- Returns whether the bridge runs or will run: false after `stop()` or when it gave up.
---@return boolean
function Supervisor:is_wanted()
  return self._again or not vim.list_contains({ 'stopped', 'stopping', 'failed' }, self.state)
end

--- Ends the current process and starts the next one; watchers do not get `on_stop`.
function Supervisor:restart()
  self._next = vim.list_extend(self._watchers, self._next)
  self._watchers = {}
  self:_end(true)
end

--- Stops the bridge without blocking.
---@param cb? fun() called when it has ended
function Supervisor:stop(cb)
  self._watchers = vim.list_extend(self._watchers, self._next)
  self._next = {}
  table.insert(self._stop_waiters, cb)
  self:_end(false)
end

--- Ends the process immediately, for the exit of the editor; calls no watcher.
function Supervisor:abandon()
  self._generation = self._generation + 1
  self._again, self._watchers, self._next, self._stop_waiters = false, {}, {}, {}
  self:_clear_timer()
  if self.process then
    self.process:abandon()
  end
  self.process, self.port, self.state = nil, nil, 'stopped'
end

--- Ends the current process.
---@param again boolean whether the next one starts after it
function Supervisor:_end(again)
  self._again = again
  if self.state == 'stopping' then
    return
  end
  self._generation = self._generation + 1
  self:_clear_timer()
  self.port = nil
  if self.process then
    self:_set('stopping')
    self.process:stop()
  else
    self:_stopped(true)
  end
end

return Supervisor
