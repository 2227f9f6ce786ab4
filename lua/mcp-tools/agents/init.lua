--- Companions of this editor: which are on, and all that keeps them so.
---
--- A companion lives in one file, `companions/<agent>.lua`. Its agent finds a discovery file, comes to its endpoint
--- with the token in there, and sees that companion's tools alone. The files stay while the bridge is started anew, on
--- the same port and with the same token: agents come back by themselves.

local announcement = require('mcp-tools.agents.discovery_files')
local companion_sessions = require('mcp-tools.editor.agents')
local companions = require('mcp-tools.agents.definitions')
local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local editor_context = require('mcp-tools.editor.context')
local endpoints = require('mcp-tools.agents.endpoints')
local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')
local registered = require('mcp-tools.scope.agent_tools')
local roots = require('mcp-tools.agents.roots')
local sessions = require('mcp-tools.agents.sessions')

local M = {}

---@type mcp-tools.companion.Verdict[]
local verdicts = {}
---@type table<string, mcp-tools.companion.Loaded>
local on = {}
---@type table<string, string> companion → what is wrong with its endpoint or its files
local faults = {}
---@type table<string, string> path of a discovery file → companion
local owners = {}

--- Calls what a companion's author has written.
---@param companion mcp-tools.Companion
---@param field 'discovery'|'environment'
---@param endpoint table
---@return any?
local function ask(companion, field, endpoint)
  local name, fn = companion.name, companion[field]
  if not fn then
    return nil
  end
  local ok, value = log.guard(('%s() of the companion %s'):format(field, name), fn, endpoint)
  if not ok then
    faults[name] = ('its %s() failed; see :McpTools log'):format(field)
  end
  return ok and value or nil
end

--- The endpoints of all that are on; none before the bridge that this editor has started is attached.
---@return mcp-tools.agents.Endpoint[]
local function endpoints_now()
  local list = {}
  for _, verdict in ipairs(verdicts) do
    local loaded = on[verdict.name]
    if loaded then
      local endpoint, fault = endpoints.of(loaded.companion, current.prepared.identity.token)
      faults[verdict.name] = fault
      list[#list + 1] = endpoint
    end
  end
  return list
end

---@return table<string, true>
local function open_endpoints()
  local open = {}
  for _, name in ipairs(current.said.endpoints and current.said.endpoints.open or {}) do
    open[name] = true
  end
  return open
end

---@param name string
---@param folders string[]
---@return mcp-tools.companion.Endpoint
local function endpoint_of(name, folders)
  local endpoint = on[name].companion.endpoint
  return {
    port = current.get_port() --[[@as integer]],
    token = endpoints.token(current.prepared.identity.token, name),
    socket = endpoint.transport == 'unix' and endpoints.socket(name) or nil,
    pid = vim.uv.os_getpid(),
    bridge_pid = current.said.hello.pid,
    roots = folders,
    trusted = vim.list_contains(config.get().companion_trust, name),
  }
end

--- The files of one companion.
---@param name string
---@param folders string[]
---@param files table<string, string> grows
local function add_files(name, folders, files)
  for _, file in ipairs(ask(on[name].companion, 'discovery', endpoint_of(name, folders)) or {}) do
    local text, err = json.encode(file.body, 'body')
    if type(file.path) ~= 'string' or not vim.startswith(vim.fs.normalize(file.path), '/') then
      faults[name] = 'discovery: a path is not absolute'
    elseif not text then
      faults[name] = 'discovery: ' .. err.message
    else
      files[file.path], owners[file.path] = text .. '\n', name
    end
  end
end

---@return string[] paths of sockets that go with this editor
local function sockets_now()
  local list = {}
  for name, loaded in pairs(on) do
    if loaded.companion.endpoint.transport == 'unix' then
      table.insert(list, (endpoints.socket(name)))
    end
  end
  return list
end

local round = 0

--- Brings the discovery files in line with what is true now. While the bridge is being started anew they stay.
local function publish()
  local wanted = next(on) ~= nil and not vim.list_contains({ 'stopped', 'failed' }, current.supervisor.state)
  if not wanted then
    owners = {}
    return announcement.want({}, {})
  elseif not current.get_port() or not current.said.endpoints then
    return
  end
  round = round + 1
  local mine = round
  roots.find(function(folders)
    if mine ~= round or not current.get_port() then
      return -- there is a later one, or will be
    end
    companion_sessions.set_roots(folders)
    local files, open = {}, open_endpoints()
    owners = {}
    for _, verdict in ipairs(verdicts) do
      local name, loaded = verdict.name, verdict.loaded
      if loaded then
        verdict.skipped = companions.skipped(loaded.companion)
      end
      if loaded and open[name] and not verdict.skipped then
        faults[name] = nil
        add_files(name, folders, files)
      end
    end
    announcement.want(files, sockets_now())
  end)
end

local due = false

--- Once for all changes of a turn of the event loop: a restart is no end.
local function publish_soon()
  if not due then
    due = true
    vim.schedule(function()
      due = false
      publish()
    end)
  end
end

local had_channel ---@type integer?

---@param what 'clients'?
local function bridge_changed(what)
  if what == 'clients' then
    return
  end
  if had_channel and current.said.channel ~= had_channel then
    sessions.drop()
  end
  had_channel = current.said.channel
  publish_soon()
end

local watching = false

local function watch()
  if watching then
    return
  end
  watching = true
  current.on_change(bridge_changed)
  editor_context.on_change(sessions.tell_context, sessions.any)
  had_channel = current.said.channel
  local group = vim.api.nvim_create_augroup('mcp-tools.agents', {})
  -- In a terminal there may be an agent that another plugin has started; then it is that one which it is to find.
  -- The same holds for a terminal that the person goes to.
  vim.api.nvim_create_autocmd({ 'DirChanged', 'TermOpen', 'FocusLost' }, { group = group, callback = publish_soon })
  vim.api.nvim_create_autocmd('VimLeavePre', { group = group, callback = announcement.remove_all })
end

sessions.use({
  find = function(name)
    return on[name] and on[name].companion
  end,
  context = function()
    return editor_context.get()
  end,
})

--- Counts what an agent asks for.
---@param definition mcp-tools.Definition
local function counted(definition)
  local handler = definition.handler
  definition.handler = function(ctx, args)
    sessions.note_call(definition.companion, ctx, definition.name)
    return handler(ctx, args)
  end
end

--- Loads what the option names, and gives the rest up.
local function load()
  local before, stays = on, {}
  verdicts, faults = companions.all(), {}
  for _, verdict in ipairs(verdicts) do
    stays[verdict.name] = verdict.loaded ~= nil
  end
  sessions.drop(function(name)
    return stays[name]
  end)
  on = {}
  for _, verdict in ipairs(verdicts) do
    local loaded = verdict.loaded
    if loaded then
      on[verdict.name] = loaded
      vim.tbl_map(counted, loaded.definitions)
      registered.set(verdict.name, loaded.definitions)
    elseif verdict.fault then
      log.warn('the companion %s is off: %s', verdict.name, verdict.fault)
    end
  end
  for name in pairs(before) do
    if not on[name] then
      registered.set(name, nil)
    end
  end
end

local option ---@type any the one that was followed last
local loaded_once = false

local function follow_option()
  local now = config.get('companions')
  if not loaded_once or not vim.deep_equal(option, now) then
    loaded_once, option = true, vim.deepcopy(now)
    load()
    return true
  end
  return false
end

--- Does what the options say now.
function M.follow()
  watch()
  if follow_option() and current.said.channel and current.prepared then
    local list = endpoints_now()
    -- A channel that is closed by now is followed by another one, whose hello has the endpoints.
    pcall(vim.rpcnotify, current.said.channel, 'endpoints', vim.json.encode(#list > 0 and list or vim.empty_dict()))
  end
  publish_soon()
end

--- The endpoints for a bridge that says hello (rpc/); nil for one that this editor has not started.
---@param channel integer
---@return mcp-tools.agents.Endpoint[]?
function M.endpoints(channel)
  if channel ~= current.said.channel or not current.prepared then
    return nil
  end
  watch()
  had_channel = channel
  follow_option()
  return endpoints_now()
end

--- The bridge tells of an agent (rpc/).
---@param event 'opened'|'notified'|'left'
---@param data table
function M.heard(event, data)
  sessions.heard(event, data)
end

--- Mentions a place to the agent of a session.
---@param session mcp-tools.companion.Session
---@param place table
---@return boolean sent
---@return string? why_not
function M.mention(session, place)
  return sessions.mention(session, place)
end

--- What an agent needs that is started in a terminal of this editor.
---@param name string of the companion
---@param cb fun(environment: mcp-tools.companion.Environment?) nil while its endpoint is not open
---@param more? { server: table, file: fun(body: table): string } our tools, too: then it need not be on, nor its
--- endpoint open, and what has to do with that is left out
function M.environment(name, cb, more)
  local stands = on[name] and current.get_port() and open_endpoints()[name]
  if not stands then
    local companion = more and (on[name] or companions.named(name))
    return cb(companion and ask(companion.companion, 'environment', more) or nil)
  end
  roots.find(function(folders)
    local is_there = on[name] and current.get_port()
    local endpoint = is_there and vim.tbl_extend('force', endpoint_of(name, folders), more or {})
    cb(endpoint and ask(on[name].companion, 'environment', endpoint) or nil)
  end)
end

--- Names of all agents that can be started in a terminal.
---@return string[]
function M.names()
  return companions.names()
end

---@class mcp-tools.agents.Status of one companion
---@field name string
---@field label string?
---@field state 'on'|'waiting'|'off' on: an agent can find it
---@field reason string? why it is not on
---@field fault boolean? the reason is a fault
---@field connect string? what the user does in the agent while it is not connected
---@field proposes string? in which of its modes it proposes edits here
---@field files string[] by which its agent finds this editor
---@field sessions mcp-tools.companion.Session[]

---@param name string
---@return string[] files
---@return string? fault
local function files_of(name)
  local files, fault = {}, nil
  for _, path in ipairs(announcement.paths()) do
    if owners[path] == name then
      table.insert(files, path)
    end
  end
  for path, why in vim.spairs(announcement.faults()) do
    if owners[path] == name then
      fault = ('%s: %s'):format(path, why)
    end
  end
  return files, fault
end

---@param verdict mcp-tools.companion.Verdict
---@return mcp-tools.agents.Status
local function status_of(verdict)
  local name, companion = verdict.name, verdict.loaded and verdict.loaded.companion or {}
  local files, unwritten = files_of(name)
  local failed = current.said.endpoints and current.said.endpoints.failed[name]
  local fault = verdict.fault or faults[name] or failed or unwritten
  local status = {
    name = name,
    label = companion.label,
    state = 'off',
    connect = companion.connect,
    proposes = companion.proposes,
    reason = fault or verdict.skipped,
    fault = fault ~= nil or nil,
    files = files,
    sessions = companion_sessions.sessions(name),
  }
  if verdict.loaded and not status.reason then
    local port, is_open = current.get_port(), open_endpoints()[name]
    status.state = port and is_open and 'on' or 'waiting'
    status.reason = not port and 'the bridge is not ready' or not is_open and 'its endpoint is not open' or nil
  end
  return status
end

--- Every companion that the option names, for people.
---@return mcp-tools.agents.Status[]
function M.status()
  return vim.tbl_map(status_of, verdicts)
end

return M
