--- Integrations: servers of agents that run already and that the bridge registers with.
---
--- Each integration is a file `integrations/<name>.lua`, loaded by name, that knows which servers the user has chosen.
--- The bridge talks to them (bridge/mcp_tools_nvim/agents/registrations.py).

local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local log = require('mcp-tools.log')

local api = vim.api

local M = {}

---@class mcp-tools.integration.Server
---@field url string
---@field via string how it was found, for the user
---@field headers table<string, string>?

---@class mcp-tools.Integration
---@field name string name of the file
---@field label string
---@field events string[] `User` autocommands that may change the list of servers
---@field servers fun(options: table): mcp-tools.integration.Server[] the servers that the user has chosen

---@class mcp-tools.integration.Report what the bridge reports about a server
---@field url string
---@field state 'connected'|'others'|'waiting'
---@field fault string

---@type table<string, { integration: mcp-tools.Integration, server: mcp-tools.integration.Server }> by URL
local entries = {}
---@type table<string, mcp-tools.integration.Report> by URL, of the bridge that runs now
local reports = {}
---@type table<string, true> URLs with which an earlier bridge has registered
local registered = {}

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

local told ---@type integer? the channel that knows of servers

--- Tells the bridge which servers to register with.
local function tell()
  local endpoint, channel = current.endpoint(), current.said.channel
  if not endpoint or not channel or (next(entries) == nil and told ~= channel) then
    return
  end
  told = channel
  local servers = {}
  for url, entry in vim.spairs(entries) do
    table.insert(servers, {
      url = url,
      headers = entry.server.headers,
      registered = registered[url] == true,
    })
  end
  pcall(vim.rpcnotify, channel, 'integrations', vim.json.encode({ url = endpoint.url, servers = servers }))
end

--- Finds the servers of all integrations that are on.
local function sync()
  entries = {}
  for name, options in pairs(wanted()) do
    local integration = require('mcp-tools.integrations.' .. name) -- by name
    local ok, servers = log.guard('servers() of the integration ' .. name, integration.servers, options)
    for _, server in ipairs(ok and servers or {}) do
      entries[server.url] = { integration = integration, server = server }
    end
  end
  for url in pairs(vim.tbl_extend('keep', reports, registered)) do
    if not entries[url] then
      reports[url], registered[url] = nil, nil
    end
  end
  tell()
end

local seen_bridge ---@type string?

--- Takes the reports of the bridge, and sends the servers to a new one.
local function bridge_changed()
  for _, report in ipairs(current.said.integrations or {}) do
    if entries[report.url] then
      reports[report.url] = report
      local is_ours = report.state == 'connected' or report.state ~= 'others' and registered[report.url]
      registered[report.url] = is_ours or nil
    end
  end
  local endpoint = current.endpoint()
  local now = endpoint and ('%s %s'):format(endpoint.url, current.said.channel or '') or nil
  if now ~= seen_bridge then
    seen_bridge, reports = now, {}
    sync()
  end
end

local watched ---@type string?

--- Follows the events of other plugins.
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
  end
end

--- Does what the option says now.
function M.follow()
  watch(wanted())
  sync()
end

---@class mcp-tools.integration.Status
---@field name string
---@field label string
---@field url string
---@field via string
---@field state 'connected'|'others'|'waiting'
---@field fault string?

--- Returns every server that is known.
---@return mcp-tools.integration.Status[]
function M.status()
  local list = {}
  for url, entry in vim.spairs(entries) do
    local report = current.endpoint() and reports[url]
    table.insert(list, {
      name = entry.integration.name,
      label = entry.integration.label,
      url = url,
      via = entry.server.via,
      state = report and report.state or 'waiting',
      fault = report and report.fault ~= '' and report.fault or nil,
    })
  end
  return list
end

return M
