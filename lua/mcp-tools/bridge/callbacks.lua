--- Callbacks `on_ready` and `on_stop`.
---
--- Receives: callbacks of everyone who started the bridge or waits for its end.
--- Sends: each its call, once.
--- Does not know about: processes or states; the supervisor says what has happened.

local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')

---@class mcp-tools.bridge.Watcher
---@field on_ready? fun(port: integer)
---@field on_stop? fun()
---@field of_next? boolean it waits for the bridge after the one that is ending

---@class mcp-tools.bridge.Callbacks
---@field list mcp-tools.bridge.Watcher[]
---@field stop_waiters fun()[]
local Callbacks = {}
Callbacks.__index = Callbacks

---@return mcp-tools.bridge.Callbacks
function Callbacks.new()
  return setmetatable({ list = {}, stop_waiters = {} }, Callbacks)
end

--- Calls what somebody else has written: its error goes to the log and to the person, not to us.
---@param what string
---@param fn? function
---@param ... any
local function call(what, fn, ...)
  if not fn then
    return
  end
  local ok, err = log.guard(what, fn, ...)
  if not ok then
    notify.error(('%s failed: %s'):format(what, tostring(err):match('[^\n]*')))
  end
end

---@param watcher { on_ready?: fun(port: integer), on_stop?: fun() }
---@param of_next boolean
function Callbacks:add(watcher, of_next)
  table.insert(self.list, { on_ready = watcher.on_ready, on_stop = watcher.on_stop, of_next = of_next })
end

---@param cb? fun()
function Callbacks:add_stop_waiter(cb)
  if cb then
    table.insert(self.stop_waiters, cb)
  end
end

--- Makes all of them belong to the next bridge, or to the one that is or was there.
---@param of_next boolean
function Callbacks:mark(of_next)
  for _, watcher in ipairs(self.list) do
    watcher.of_next = of_next
  end
end

---@param port integer
function Callbacks:tell_ready(port)
  for _, watcher in ipairs(vim.list_slice(self.list)) do
    local on_ready = watcher.on_ready
    watcher.on_ready = nil
    call('on_ready', on_ready, port)
  end
end

--- Tells everyone whose bridge this was; those who asked for the next one stay.
---@param later? boolean call them on the next turn of the main loop
function Callbacks:tell_stopped(later)
  local ended, waiters = {}, self.stop_waiters
  self.stop_waiters = {}
  self.list = vim.tbl_filter(function(watcher)
    if not watcher.of_next then
      table.insert(ended, watcher)
    end
    return watcher.of_next
  end, self.list)
  local function tell()
    for _, watcher in ipairs(ended) do
      call('on_stop', watcher.on_stop)
    end
    for _, waiter in ipairs(waiters) do
      call('stop callback', waiter)
    end
  end
  if later then
    vim.schedule(tell)
  else
    tell()
  end
end

return Callbacks
