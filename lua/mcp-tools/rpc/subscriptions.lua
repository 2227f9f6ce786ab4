--- Subscriptions: which channels are notified of changes of which resources.
---
--- Editor events are watched only while there is a subscription. While a notification is due, further changes only
--- check a flag.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local time_slice = require('mcp-tools.util.time_slice')
local timer = require('mcp-tools.util.timer')

local uv = vim.uv

local M = {}

--- Minimum time between two notifications of one URI, and maximum delay after a change.
M.INTERVAL_MS = 200
--- Maximum number of URIs of one channel. The bridge has lower limits for each session.
M.MAX_URIS = 4096

---@class mcp-tools.Subscription
---@field uri string
---@field channels table<integer, integer> channel → number of its subscriptions
---@field located mcp-tools.Located?
---@field stop fun()? ends the watch
---@field pending boolean a notification is due
---@field next_at integer ns, earliest time of the next notification
---@field timer mcp-tools.Timer?
---@field closed boolean?
---@field changed fun() to be called for each change

---@class mcp-tools.Subscriptions
---@field entries table<string, mcp-tools.Subscription>
---@field per_channel table<integer, integer> number of subscriptions
---@field find fun(uri: string): mcp-tools.Located?, mcp-tools.Error?
---@field send fun(channel: integer, uri: string)
---@field due mcp-tools.Subscription[]? remaining entries of a running refresh
local Subscriptions = {}
Subscriptions.__index = Subscriptions

---@class mcp-tools.SubscriptionOptions
---@field find fun(uri: string): mcp-tools.Located?, mcp-tools.Error?
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

--- Returns the function that a watch calls for each change.
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
    log.guard(('resource %s: ending the watch'):format(entry.uri), stop)
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

--- Subscribes a channel to a resource. Subscriptions are counted: each needs its own `unsubscribe`.
---@param channel integer
---@param uri string
---@return mcp-tools.Error? err
function Subscriptions:subscribe(channel, uri)
  local entry = self.entries[uri]
  local count = self.per_channel[channel] or 0
  if count >= M.MAX_URIS and not (entry and entry.channels[channel]) then
    return errors.new('busy', ('there are already %d subscriptions; unsubscribe from some first'):format(count))
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
local function remove_channel(self, entry, channel)
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

--- Ends one subscription.
---@param channel integer
---@param uri string
---@return boolean unsubscribed false if there was none
function Subscriptions:unsubscribe(channel, uri)
  local entry = self.entries[uri]
  local count = entry and entry.channels[channel]
  if not count then
    return false
  elseif count > 1 then
    entry.channels[channel] = count - 1
  else
    remove_channel(self, entry, channel)
  end
  return true
end

--- Ends all subscriptions of a channel.
---@param channel integer
function Subscriptions:release(channel)
  for _, entry in pairs(vim.tbl_values(self.entries)) do
    if entry.channels[channel] then
      remove_channel(self, entry, channel)
    end
  end
end

--- Reports that a resource has changed.
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
  local is_running = self.due ~= nil
  self.due = vim.tbl_values(self.entries)
  if is_running then
    return
  end
  time_slice.run(function(pause)
    while #self.due > 0 do
      local entry = table.remove(self.due)
      if not entry.closed then
        refresh_one(self, entry)
      end
      pause()
    end
    self.due = nil
  end)
end

--- Returns whether there is any subscription.
---@return boolean
function Subscriptions:any()
  return next(self.entries) ~= nil
end

return M
