--- Integrations: servers of agents that run already, which are given this editor's tools for as long as both run.
---
--- Receives: the option `integrations`; each change of the bridge; word of other plugins that a server is there.
--- Sends: our URL and token to each of them, again when they have forgotten it; at the end that it is over.
--- Does not know about: any agent; each has a file `integrations/<name>.lua`, which is loaded by name.

local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local http = require('mcp-tools.util.http')
local log = require('mcp-tools.log')
local timer = require('mcp-tools.util.timer')

local api = vim.api

local M = {}

--- What our tools are called there, as in `:McpTools endpoint`.
local NAME = 'nvim-tools'
--- A server that was started anew knows nothing of us: it is looked at every so many ms.
local LOOK_EVERY = 15000

---@class mcp-tools.integration.Server
---@field url string
---@field via string by what it was found, for people
---@field headers table<string, string>?

---@class mcp-tools.Integration
---@field name string that of the file
---@field label string
---@field events string[] `User` autocommands at which there may be another server
---@field servers fun(options: table): mcp-tools.integration.Server[] those that the person has chosen, as of now
---@field state fun(server: mcp-tools.integration.Server, name: string, cb: fun(state: string?, fault: string?)) of our
--- entry there; "none" without one, "connected" where it works
---@field add fun(server: mcp-tools.integration.Server, ours: { name: string, url: string, token: string },
--- cb: fun(fault: string?))
---@field removal fun(server: mcp-tools.integration.Server, name: string): mcp-tools.http.Request

---@class mcp-tools.integration.Entry
---@field integration mcp-tools.Integration
---@field server mcp-tools.integration.Server
---@field ours string? the bridge that it was given: its URL and its process
---@field busy boolean?
---@field fault string?
---@field others boolean? somebody else has put a server of this name there

---@type table<string, mcp-tools.integration.Entry> by the server's URL
local entries = {}

---@type mcp-tools.Timer?
local looking

--- The bridge of now; after a restart it is another, though its URL is the same.
---@return string?
local function bridge()
  local endpoint = current.endpoint()
  return endpoint and ('%s %s'):format(endpoint.url, current.said.hello.pid or '') or nil
end

---@return table<string, table> name → its options, of those that are on
local function wanted()
  local on = {}
  for name, options in pairs(config.get().integrations or {}) do
    if options and #api.nvim_get_runtime_file(('lua/mcp-tools/integrations/%s.lua'):format(name), false) > 0 then
      on[name] = type(options) == 'table' and options or {}
    end
  end
  return on
end

---@param entry mcp-tools.integration.Entry
---@param fault string?
local function note(entry, fault)
  if fault and fault ~= entry.fault then
    log.info('%s at %s: %s', entry.integration.label, entry.server.url, fault)
  end
  entry.fault = fault
end

---@param entry mcp-tools.integration.Entry
local function take_out(entry)
  if entry.ours then
    entry.ours = nil
    http.request(entry.integration.removal(entry.server, NAME), function() end)
  end
end

--- Is it to have our tools, still? Much may happen while it answers.
---@param entry mcp-tools.integration.Entry
---@return boolean
local function is_wanted(entry)
  return entries[entry.server.url] == entry and current.supervisor.state ~= 'stopped'
end

---@param entry mcp-tools.integration.Entry
local function put(entry)
  local endpoint = current.endpoint()
  if not endpoint then
    entry.busy = nil
    return
  end
  local ours, given = { name = NAME, url = endpoint.url, token = endpoint.token }, bridge()
  entry.integration.add(entry.server, ours, function(fault)
    entry.busy, entry.ours = nil, not fault and given or nil
    note(entry, fault)
    if not is_wanted(entry) then
      take_out(entry)
    end
  end)
end

--- Sees to it that a server has our tools.
---@param entry mcp-tools.integration.Entry
local function see_to(entry)
  if not current.endpoint() or entry.busy then
    return
  end
  entry.busy = true
  entry.integration.state(entry.server, NAME, function(state, fault)
    if not state or not is_wanted(entry) then
      entry.busy, entry.ours = nil, nil
      return note(entry, fault)
    end
    entry.others = state == 'connected' and not entry.ours or nil
    if state == 'connected' and (entry.others or entry.ours == bridge()) then
      entry.busy = nil
      return note(entry, nil)
    end
    put(entry)
  end)
end

--- Does what the option says, for the servers that there are now.
local function sync()
  local seen = {}
  for name, options in pairs(wanted()) do
    local integration = require('mcp-tools.integrations.' .. name) -- by name
    local ok, servers = log.guard('servers() of the integration ' .. name, integration.servers, options)
    for _, server in ipairs(ok and servers or {}) do
      seen[server.url] = true
      entries[server.url] = entries[server.url] or { integration = integration, server = server }
      entries[server.url].server = server
    end
  end
  for url, entry in pairs(entries) do
    if not seen[url] then
      take_out(entry)
      entries[url] = nil
    elseif current.supervisor.state == 'stopped' then
      take_out(entry)
    else
      see_to(entry)
    end
  end
end

--- The editor ends: each server is told so in a moment, and nobody waits for its answer.
local function remove_now()
  for _, entry in pairs(entries) do
    local request = entry.ours and entry.integration.removal(entry.server, NAME)
    local at = request and http.loopback(request.url)
    if request and at then
      local address = at.host == '::1' and '[::1]' or at.host
      local ok, channel = pcall(vim.fn.sockconnect, 'tcp', ('%s:%d'):format(address, at.port))
      if ok and channel > 0 then
        pcall(vim.fn.chansend, channel, http.bytes(request))
      end
    end
  end
end

local watched ---@type string?
local seen_bridge ---@type string?

--- The bridge is another, or is not there any more; what else it says is of no interest.
local function bridge_changed()
  local now = ('%s %s'):format(current.supervisor.state, bridge() or '')
  if now ~= seen_bridge then
    seen_bridge = now
    sync()
  end
end

--- Hears of servers from other plugins.
---@param on table<string, table>
local function watch(on)
  local events = {}
  for name in pairs(on) do
    vim.list_extend(events, require('mcp-tools.integrations.' .. name).events) -- by name
  end
  table.sort(events)
  local key = table.concat(events, '\n')
  if key == watched then
    return
  end
  if watched == nil then
    current.on_change(vim.schedule_wrap(bridge_changed))
  end
  watched = key
  local group = api.nvim_create_augroup('mcp-tools.integrations', {})
  if #events > 0 then
    api.nvim_create_autocmd('User', { group = group, pattern = events, callback = vim.schedule_wrap(sync) })
    api.nvim_create_autocmd('VimLeavePre', { group = group, callback = remove_now })
  end
end

--- Does what the option says now.
function M.follow()
  local on = wanted()
  watch(on)
  if next(on) and not looking then
    looking = timer.every(LOOK_EVERY, sync)
  elseif not next(on) and looking then
    looking:stop()
    looking = nil
  end
  sync()
end

---@class mcp-tools.integration.Status
---@field name string
---@field label string
---@field url string
---@field via string
---@field state 'connected'|'others'|'waiting'
---@field fault string?

--- Every server that is known, for people.
---@return mcp-tools.integration.Status[]
function M.status()
  local list = {}
  for url, entry in vim.spairs(entries) do
    table.insert(list, {
      name = entry.integration.name,
      label = entry.integration.label,
      url = url,
      via = entry.server.via,
      state = entry.ours and entry.ours == bridge() and 'connected' or entry.others and 'others' or 'waiting',
      fault = entry.fault,
    })
  end
  return list
end

return M
