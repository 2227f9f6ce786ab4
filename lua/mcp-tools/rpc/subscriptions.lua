--- Subscriptions: who wants to hear of changes of which resource, and when they are told.
---
--- Editor events are watched only while somebody has subscribed. A change costs the editor one look at a flag while a
--- message is due already.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local timer = require('mcp-tools.util.timer')

local uv = vim.uv

local M = {}

--- Messages of one URI are at least so far apart: five a second, and none later than this after its change.
M.INTERVAL_MS = 200
--- URIs that one channel may watch: a bound on what a bridge may cost. A session has a share of it, says the bridge.
M.MAX_URIS = 4096
--- ns that a refresh may take before it yields to the event loop.
M.SLICE_NS = 4e6

---@class mcp-tools.Subscription
---@field uri string
---@field channels table<integer, integer> channel → how often it has subscribed
---@field located mcp-tools.Located?
---@field stop fun()? ends the watch
---@field pending boolean a message is due
---@field next_at integer ns, before which none goes out
---@field timer mcp-tools.Timer?
---@field closed boolean?

---@class mcp-tools.Subscriptions
---@field entries table<string, mcp-tools.Subscription>
---@field due mcp-tools.Subscription[]? still to be refreshed, while a refresh is running
local Subscriptions = {}
Subscriptions.__index = Subscriptions

---@class mcp-tools.SubscriptionOptions
---@field find fun(uri: string): mcp-tools.Located?, mcp-tools.Error? what a URI names
---@field send fun(channel: integer, uri: string)

---@param opts mcp-tools.SubscriptionOptions
---@return mcp-tools.Subscriptions
function M.new(opts)
  return setmetatable({ entries = {}, per_channel = {}, find = opts.find, send = opts.send }, Subscriptions)
end

---@param entry mcp-tools.Subscription
local function flush(self, entry)
  if entry.closed then
    return
  end
  entry.pending = false
  entry.next_at = uv.hrtime() + M.INTERVAL_MS * 1e6
  for channel in pairs(entry.channels) do
    self.send(channel, entry.uri)
  end
end

--- The function that a watch calls with each change.
---@param self mcp-tools.Subscriptions
---@param entry mcp-tools.Subscription
local function changer(self, entry)
  local function due()
    flush(self, entry)
  end
  return function()
    if entry.pending or entry.closed then
      return
    end
    entry.pending = true
    local wait = entry.next_at - uv.hrtime()
    if wait <= 0 then
      return vim.schedule(due)
    end
    entry.timer = timer.after(wait / 1e6, due)
  end
end

---@param entry mcp-tools.Subscription
local function stop_watch(entry)
  local stop = entry.stop
  entry.stop = nil
  if stop then
    log.guard(('resource %s: ending its watch'):format(entry.uri), stop)
  end
end

---@param entry mcp-tools.Subscription
---@param located mcp-tools.Located?
local function start_watch(entry, located)
  entry.located = located
  local watch = located and located.resource.watch
  if watch then
    local ok, stop =
      log.guard(('resource %s: its watch'):format(entry.uri), watch, entry.changed, located.params, entry.uri)
    entry.stop = ok and stop or nil
  end
end

--- A channel wants to hear of a resource. As often as it says so, it must unsubscribe.
---@param channel integer
---@param uri string
---@return mcp-tools.Error? err
function Subscriptions:subscribe(channel, uri)
  local entry = self.entries[uri]
  local count = self.per_channel[channel] or 0
  if count >= M.MAX_URIS and not (entry and entry.channels[channel]) then
    return errors.new('busy', ('%d resources are subscribed to already; unsubscribe from some first'):format(count))
  end
  if not entry then
    local located, err = self.find(uri)
    if not located then
      return err
    end
    entry = { uri = uri, channels = {}, pending = false, next_at = 0 }
    entry.changed = changer(self, entry)
    self.entries[uri] = entry
    start_watch(entry, located)
  end
  if not entry.channels[channel] then
    self.per_channel[channel] = count + 1
  end
  entry.channels[channel] = (entry.channels[channel] or 0) + 1
end

---@param self mcp-tools.Subscriptions
---@param entry mcp-tools.Subscription
---@param channel integer
local function leave(self, entry, channel)
  entry.channels[channel] = nil
  local left = self.per_channel[channel] - 1
  self.per_channel[channel] = left > 0 and left or nil
  if next(entry.channels) then
    return
  end
  entry.closed = true
  self.entries[entry.uri] = nil
  if entry.timer then
    entry.timer:stop()
    entry.timer = nil
  end
  stop_watch(entry)
end

--- Takes one subscription back.
---@param channel integer
---@param uri string
---@return boolean there was one
function Subscriptions:unsubscribe(channel, uri)
  local entry = self.entries[uri]
  local count = entry and entry.channels[channel]
  if not count then
    return false
  elseif count > 1 then
    entry.channels[channel] = count - 1
  else
    leave(self, entry, channel)
  end
  return true
end

--- A channel is gone, with all that it subscribed to.
---@param channel integer
function Subscriptions:release(channel)
  for _, entry in pairs(vim.tbl_values(self.entries)) do
    if entry.channels[channel] then
      leave(self, entry, channel)
    end
  end
end

--- Something changed.
---@param uri string
function Subscriptions:notify(uri)
  local entry = self.entries[uri]
  if entry then
    entry.changed()
  end
end

--- Restarts the watch of a subscription whose resource has been added, replaced or removed.
---@param self mcp-tools.Subscriptions
---@param entry mcp-tools.Subscription
local function refresh_one(self, entry)
  local located = self.find(entry.uri)
  local old, new = entry.located and entry.located.resource, located and located.resource
  if old ~= new then
    stop_watch(entry)
    start_watch(entry, located)
    entry.changed()
  end
end

--- Adapts all watches after definitions were added, replaced or removed. Works in slices, so that many subscriptions
--- do not block the main thread; a later refresh starts over.
function Subscriptions:refresh()
  local running = self.due ~= nil
  self.due = vim.tbl_values(self.entries)
  if running then
    return
  end
  local function slice()
    local stop = uv.hrtime() + M.SLICE_NS
    repeat
      local entry = table.remove(self.due)
      if not entry then
        self.due = nil
        return
      elseif not entry.closed then
        refresh_one(self, entry)
      end
    until uv.hrtime() > stop
    vim.defer_fn(slice, 1)
  end
  slice()
end

--- Is anybody subscribed to anything?
---@return boolean
function Subscriptions:any()
  return next(self.entries) ~= nil
end

return M
