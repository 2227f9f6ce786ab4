--- Running OpenCode servers, `opencode serve` or a terminal with `--port`, with which the bridge registers
--- (bridge/mcp_tools_nvim/agents/registrations.py). Observed with 1.18.33.
---
--- Only servers that the user has chosen receive a token: the option, the server that opencode.nvim is connected to,
--- and the sessions of sidekick.nvim. Other ports are never tried.

local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')

local api = vim.api

local M = {}

--- `User` events after which the list of servers may be different.
local EVENTS = { 'OpencodeEvent:server.connected', 'SidekickCliAttach' }

---@class mcp-tools.integration.Server
---@field url string
---@field via string how it was found
---@field headers table<string, string>?

---@class mcp-tools.integration.Report what the bridge reports about a server
---@field url string
---@field state 'connected'|'others'|'waiting' others: another process has registered a server of our name there
---@field fault string

---@type table<string, mcp-tools.integration.Server> by URL
local servers = {}
---@type table<string, mcp-tools.integration.Report> by URL, of the current bridge
local reports = {}
---@type table<string, true> URLs with which an earlier bridge has registered
local registered = {}

---@param user string?
---@param password string?
---@return table<string, string>?
local function basic(user, password)
  if not password or password == '' then
    return nil
  end
  return { Authorization = 'Basic ' .. vim.base64.encode((user or 'opencode') .. ':' .. password) }
end

--- Returns a module of another plugin if it is loaded.
---@param name string
---@return table?
local function loaded(name)
  local module = package.loaded[name]
  return type(module) == 'table' and module or nil
end

---@param list mcp-tools.integration.Server[]
---@param url any
---@param via string
---@param headers? table<string, string>
local function add(list, url, via, headers)
  url = type(url) == 'string' and (url:match('^.*[^/]') or '') or ''
  local known = vim.iter(list):any(function(server)
    return server.url == url
  end)
  if url ~= '' and not known then
    table.insert(list, { url = url, via = via, headers = headers })
  end
end

--- Returns the servers that the user has chosen.
---@param options table
---@return mcp-tools.integration.Server[]
local function chosen(options)
  local list = {}
  local password = options.password_env and vim.env[options.password_env]
  for _, url in ipairs(type(options.url) == 'table' and options.url or { options.url }) do
    add(list, url, 'the option', basic(options.username, password))
  end
  local server = loaded('opencode.server')
  local connected = server and server.connected
  if type(connected) == 'table' then
    local plugin = loaded('opencode.config')
    local theirs = plugin and plugin.opts and plugin.opts.server or {}
    add(list, connected.url, 'opencode.nvim', basic(theirs.username, theirs.password))
  end
  local sessions = loaded('sidekick.cli.session')
  for _, session in pairs(sessions and sessions.attached and sessions.attached() or {}) do
    add(list, session.base_url, 'sidekick.nvim', basic(options.username, password))
  end
  return list
end

local sent_to ---@type integer? the channel that has received the servers

--- Sends the bridge the servers to register with.
local function send_servers()
  local endpoint, channel = current.endpoint(), current.reported.channel
  if not endpoint or not channel or (next(servers) == nil and sent_to ~= channel) then
    return
  end
  sent_to = channel
  local list = {}
  for url, server in vim.spairs(servers) do
    table.insert(list, { url = url, headers = server.headers, registered = registered[url] == true })
  end
  current.send('integrations', vim.json.encode({ url = endpoint.url, servers = list }))
end

--- Finds the servers, and sends them to the bridge.
local function sync()
  local options = config.get('integrations.opencode')
  servers = {}
  for _, server in ipairs(options and chosen(type(options) == 'table' and options or {}) or {}) do
    servers[server.url] = server
  end
  for url in pairs(vim.tbl_extend('keep', reports, registered)) do
    if not servers[url] then
      reports[url], registered[url] = nil, nil
    end
  end
  send_servers()
end

local seen_bridge ---@type string?

--- Stores the reports of the bridge, and sends the servers to a new bridge.
local function on_bridge_change()
  for _, report in ipairs(current.reported.integrations or {}) do
    if servers[report.url] then
      reports[report.url] = report
      local is_ours = report.state == 'connected' or report.state ~= 'others' and registered[report.url]
      registered[report.url] = is_ours or nil
    end
  end
  local endpoint = current.endpoint()
  local bridge = endpoint and ('%s %s'):format(endpoint.url, current.reported.channel or '') or nil
  if bridge ~= seen_bridge then
    seen_bridge, reports = bridge, {}
    sync()
  end
end

local watching = false

--- Applies the current option.
function M.follow()
  if not watching then
    watching = true
    current.on_change(vim.schedule_wrap(on_bridge_change))
    local group = api.nvim_create_augroup('mcp-tools.integrations', {})
    api.nvim_create_autocmd('User', { group = group, pattern = EVENTS, callback = vim.schedule_wrap(sync) })
  end
  sync()
end

---@class mcp-tools.integration.Status
---@field label string
---@field url string
---@field via string
---@field state 'connected'|'others'|'waiting'
---@field fault string?

--- Returns the status of every known server.
---@return mcp-tools.integration.Status[]
function M.status()
  local list = {}
  for url, server in vim.spairs(servers) do
    local report = current.endpoint() and reports[url]
    table.insert(list, {
      label = 'OpenCode',
      url = url,
      via = server.via,
      state = report and report.state or 'waiting',
      fault = report and report.fault ~= '' and report.fault or nil,
    })
  end
  return list
end

return M
