--- The attached channels: bridges, and programs that only call or provide tools. Detects closed ones.

local Call = require('mcp-tools.calls.call')
local current = require('mcp-tools.bridge.current')
local core = require('mcp-tools.core')
local new_subscriptions = require('mcp-tools.rpc.subscriptions').new
local mounted = require('mcp-tools.rpc.mounted')
local resource = require('mcp-tools.calls.kinds.resource')
local source = require('mcp-tools.registry.source')
local timer = require('mcp-tools.util.timer')

local M = {}

--- ms between two checks for closed channels: while something depends on them, and otherwise.
M.WATCH_MS, M.IDLE_MS = 1000, 30000

--- Attached channels by id. A field instead of a function, because every call uses it.
---@type table<integer, mcp-tools.Channel>
M.attached = {}

local attached = M.attached

---@type mcp-tools.Subscriptions?
local subscriptions

--- Finds the resource of a URI. A mounted server's resource that is denied cannot be watched either.
---@param uri string
---@return mcp-tools.Located?
---@return mcp-tools.Error? err
local function find(uri)
  local parts = core.for_call('resource', uri)
  local located, err = resource.find(parts.registry, uri)
  if located and source.is_mounted(located) then
    local call = Call.new({ id = 'subscription', name = uri, host = 'mcp' })
    call.kind, call.definition, call.args = resource, located, located.params
    local decision = parts.gateway:judge(call)
    if decision.action == 'deny' then
      return nil, resource.miss(uri, decision.reason)
    end
  end
  return located, err
end

--- Returns the subscriptions of all channels.
---@return mcp-tools.Subscriptions
function M.subscriptions()
  subscriptions = subscriptions
    or new_subscriptions({
      find = find,
      send = function(id, uri)
        if attached[id] then
          attached[id]:emit('updated', uri)
        end
      end,
    })
  return subscriptions
end

--- Notifies the subscribers of a resource that has changed.
---@param uri string
function M.updated(uri)
  if subscriptions then
    subscriptions:notify(uri)
  end
end

local watch ---@type mcp-tools.Timer?
local interval ---@type integer? ms of the watch
local check ---@type fun()

--- Sets the interval of the checks; nil stops them.
---@param ms integer?
local function set_interval(ms)
  if ms == interval then
    return
  elseif watch then
    watch:stop()
  end
  interval = ms
  watch = ms and timer.every(ms, check) or nil
end

---@param id integer
local function is_open(id)
  return vim.api.nvim_get_chan_info(id).id ~= nil -- Neovim 0.10 returns a table for a closed channel
end

local function drop_lost()
  for id in pairs(attached) do
    if not is_open(id) then
      M.lost(id)
    end
  end
end

function check()
  drop_lost()
  local in_use = core.parts().executor.active > 0 or (subscriptions and subscriptions:any()) or mounted.any()
  set_interval(next(attached) and (in_use and M.WATCH_MS or M.IDLE_MS) or nil)
end

--- Checks for closed channels every second while there is a running call, a subscription or a provider.
function M.keep_watch()
  set_interval(M.WATCH_MS)
end

--- Attaches a channel. Detaches closed ones first.
---@param channel mcp-tools.Channel
function M.attach(channel)
  drop_lost()
  attached[channel.id] = channel
  set_interval(interval or M.IDLE_MS)
end

--- Detaches a closed channel. Cancels its calls and drops results that it did not fetch.
---@param id integer
function M.lost(id)
  local channel = attached[id]
  if not channel then
    return
  end
  attached[id] = nil
  if subscriptions then
    subscriptions:release(id)
  end
  local function belongs_to_channel(call)
    return call.listener == channel
  end
  local executor = core.parts().executor
  executor:cancel_where(belongs_to_channel, channel.role == 'client' and 'disconnected' or 'bridge_gone')
  executor:forget_where(belongs_to_channel)
  mounted.lost(id)
  local mounts = package.loaded['mcp-tools.mounts'] -- start-up cost
  if mounts then
    mounts.lost(id)
  end
  current.detached(id)
end

---@type table<mcp-tools.Kind, true>? changed kinds that no channel has been notified of yet
local pending

-- Every attached channel is notified of changes once per turn of the event loop. Nothing here may load definitions:
-- loading them is what changes the registry.
core.registry():on_change(function(kind)
  if pending then
    pending[kind] = true
    return
  end
  if next(attached) == nil then
    return
  end
  pending = { [kind] = true }
  vim.schedule(function()
    local due = pending or {}
    pending = nil
    if subscriptions and (due.resources or due.templates) then
      subscriptions:refresh()
    end
    for changed in pairs(due) do
      for id, channel in pairs(attached) do
        if not channel:emit('changed', changed, core.parts().registry.revisions[changed]) then
          M.lost(id)
        end
      end
    end
  end)
end)

return M
