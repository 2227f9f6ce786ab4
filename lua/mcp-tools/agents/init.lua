--- Terminal agents that connect to this editor: which are enabled, their endpoints and their discovery files.
---
--- One file, `known/<agent>.lua`, describes an agent. The agent reads a discovery file, connects to its endpoint with
--- the token from that file, and sees only that agent's tools. The files stay while the bridge restarts on the same
--- port with the same token, so agents reconnect automatically.

local discovery_files = require('mcp-tools.agents.discovery_files')
local editor_agents = require('mcp-tools.editor.agents')
local definitions = require('mcp-tools.agents.definitions')
local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local editor_context = require('mcp-tools.editor.context')
local instances = require('mcp-tools.instances.file')
local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')
local scope = require('mcp-tools.scope')
local roots = require('mcp-tools.agents.roots')
local sessions = require('mcp-tools.agents.sessions')
local timer = require('mcp-tools.util.timer')

local uv = vim.uv

local M = {}

--- Maximum length of a socket's path in bytes: `sun_path` has 104 bytes with the final zero, on Linux 108.
local MAX_SOCKET = 103

--- Derives an agent's token from that of the bridge. It changes only with the bridge's token, and does not reveal it.
---@param token string of the bridge
---@param name string
---@return string
function M.token(token, name)
  local derived = vim.fn.sha256(token .. vim.fn.sha256(token .. ' agent ' .. name))
  log.hide(derived)
  return derived
end

--- Finds the path of an agent's socket: next to the instance files, or in a temporary directory if that path is too
--- long.
---@param name string
---@return string? path
---@return string? fault
local function socket_of(name)
  local file = ('%d-%s.sock'):format(uv.os_getpid(), name)
  local directories = { instances.dir(), ('%s/mcp-tools-%d'):format(uv.os_tmpdir(), uv.getuid()) }
  for _, directory in ipairs(directories) do
    local path = vim.fs.joinpath(directory, file)
    if #path <= MAX_SOCKET then
      local ok, fault = private_files.ensure_dir(directory)
      return ok and path or nil, fault
    end
  end
  return nil, ('socket path too long: %s'):format(vim.fs.joinpath(directories[2], file))
end

--- An endpoint as sent to the bridge.
---@class mcp-tools.agents.Endpoint
---@field name string
---@field token string
---@field transport 'http'|'websocket'|'unix'
---@field header string
---@field scheme string?
---@field subprotocol string?
---@field server { name: string, version: string, title: string? }
---@field socket string?
---@field label string?

---@param agent mcp-tools.Agent
---@param token string of the bridge
---@return mcp-tools.agents.Endpoint? endpoint
---@return string? fault
local function new_endpoint(agent, token)
  local spec, socket = agent.endpoint, nil
  if spec.transport == 'unix' then
    local path, fault = socket_of(agent.name)
    if not path then
      return nil, fault
    end
    socket = path
  end
  return vim.tbl_extend('force', spec, {
    name = agent.name,
    token = M.token(token, agent.name),
    header = (spec.header or 'authorization'):lower(),
    server = vim.tbl_extend('force', { name = 'mcp-tools.nvim', version = project.VERSION }, spec.server or {}),
    socket = socket,
    label = agent.label,
  })
end

---@type mcp-tools.agents.Verdict[]
local verdicts = {}
---@type table<string, mcp-tools.agents.Loaded>
local enabled = {}
---@type table<string, string> agent → error of its endpoint or its files
local faults = {}
---@type table<string, string> path of a discovery file → agent
local owners = {}

--- Calls a function of an agent's definition.
---@param agent mcp-tools.Agent
---@param field 'discovery'|'environment'
---@param endpoint table
---@return any?
local function call(agent, field, endpoint)
  local name, fn = agent.name, agent[field]
  if not fn then
    return nil
  end
  local ok, value = log.guard(('%s() of the agent %s'):format(field, name), fn, endpoint)
  if not ok then
    faults[name] = ('%s() failed; see :McpTools log'):format(field)
  end
  return ok and value or nil
end

--- Returns the endpoints of all enabled agents. Requires an attached bridge that this editor has started.
---@return mcp-tools.agents.Endpoint[]
local function endpoints_now()
  local list = {}
  for _, verdict in ipairs(verdicts) do
    local loaded = enabled[verdict.name]
    if loaded then
      local endpoint, fault = new_endpoint(loaded.agent, current.launch.identity.token)
      faults[verdict.name] = fault
      list[#list + 1] = endpoint
    end
  end
  return list
end

---@param name string
---@return boolean
local function is_open(name)
  return vim.list_contains(current.reported.endpoints and current.reported.endpoints.open or {}, name)
end

---@param name string
---@param directories string[]
---@return mcp-tools.agents.OpenEndpoint
local function endpoint_of(name, directories)
  local endpoint = enabled[name].agent.endpoint
  return {
    port = current.get_port() --[[@as integer]],
    token = M.token(current.launch.identity.token, name),
    socket = endpoint.transport == 'unix' and socket_of(name) or nil,
    pid = uv.os_getpid(),
    bridge_pid = current.reported.hello.pid,
    roots = directories,
    trusted = vim.list_contains(config.get().agent_directory_trust, name),
  }
end

--- Adds the discovery files of one agent.
---@param name string
---@param directories string[]
---@param files table<string, string> path → text; modified
local function add_files(name, directories, files)
  for _, file in ipairs(call(enabled[name].agent, 'discovery', endpoint_of(name, directories)) or {}) do
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

---@return string[] paths of the sockets of this editor
local function sockets_now()
  local list = {}
  for name, loaded in pairs(enabled) do
    if loaded.agent.endpoint.transport == 'unix' then
      table.insert(list, (socket_of(name)))
    end
  end
  return list
end

local round = 0

--- Brings the discovery files in line with the current state. They stay while the bridge restarts.
local function publish()
  local wanted = next(enabled) ~= nil and not vim.list_contains({ 'stopped', 'failed' }, current.state)
  if not wanted then
    owners = {}
    return discovery_files.set({}, {})
  elseif not current.get_port() or not current.reported.endpoints then
    return
  end
  round = round + 1
  local mine = round
  roots.find(function(directories)
    if mine ~= round or not current.get_port() then
      return -- a later round replaces this one
    end
    editor_agents.set_roots(directories)
    local files = {}
    owners = {}
    for _, verdict in ipairs(verdicts) do
      local name, loaded = verdict.name, verdict.loaded
      if loaded then
        verdict.skipped = definitions.skipped(loaded.agent)
      end
      if loaded and is_open(name) and not verdict.skipped then
        faults[name] = nil
        add_files(name, directories, files)
      end
    end
    discovery_files.set(files, sockets_now())
  end)
end

--- Publishes once per turn of the event loop, so that a restart, which is `stopped` for a moment, does not remove the
--- files.
local publish_soon = timer.soon(publish)

local had_channel ---@type integer?

---@param what 'clients'?
local function on_bridge_change(what)
  if what == 'clients' then
    return
  end
  if had_channel and current.reported.channel ~= had_channel then
    sessions.drop()
  end
  had_channel = current.reported.channel
  publish_soon()
end

local watching = false

local function watch()
  if watching then
    return
  end
  watching = true
  current.on_change(on_bridge_change)
  editor_context.on_change(sessions.send_context, sessions.any)
  had_channel = current.reported.channel
  local group = vim.api.nvim_create_augroup('mcp-tools.agents', {})
  -- The files must be current when another plugin starts an agent in a terminal, and when the user switches to a
  -- terminal outside of Neovim.
  vim.api.nvim_create_autocmd({ 'DirChanged', 'TermOpen', 'FocusLost' }, { group = group, callback = publish_soon })
  vim.api.nvim_create_autocmd('VimLeavePre', { group = group, callback = discovery_files.remove_all })
end

--- Records the tools that an agent calls.
---@param definition mcp-tools.Definition
local function record_calls(definition)
  local handler = definition.handler
  definition.handler = function(ctx, args)
    sessions.record_call(definition.agent, ctx, definition.name)
    return handler(ctx, args)
  end
end

--- Loads the agents that the option `agents` names, and disables all others.
local function load()
  local before, stays = enabled, {}
  verdicts, faults = definitions.all(), {}
  for _, verdict in ipairs(verdicts) do
    stays[verdict.name] = verdict.loaded ~= nil
  end
  sessions.drop(function(name)
    return stays[name]
  end)
  enabled = {}
  sessions.enabled = enabled
  for _, verdict in ipairs(verdicts) do
    local loaded = verdict.loaded
    if loaded then
      enabled[verdict.name] = loaded
      vim.tbl_map(record_calls, loaded.definitions)
      scope.set_agent_tools(verdict.name, loaded.definitions)
    elseif verdict.fault then
      log.warn("agent '%s' is disabled: %s", verdict.name, verdict.fault)
    end
  end
  for name in pairs(before) do
    if not enabled[name] then
      scope.set_agent_tools(name, nil)
    end
  end
end

local option ---@type any the value of `agents` that was applied last

---@return boolean changed
local function follow_option()
  local now = config.get('agents')
  if vim.deep_equal(option, now) then
    return false
  end
  option = vim.deepcopy(now)
  load()
  return true
end

--- Applies the current options.
function M.follow()
  watch()
  if follow_option() and current.reported.channel and current.launch then
    local list = endpoints_now()
    current.send('endpoints', vim.json.encode(#list > 0 and list or vim.empty_dict()))
  end
  publish_soon()
end

--- Returns the endpoints for a bridge that connects; nil if this editor has not started that bridge.
---@param channel integer
---@return mcp-tools.agents.Endpoint[]?
function M.endpoints(channel)
  if channel ~= current.reported.channel or not current.launch then
    return nil
  end
  watch()
  had_channel = channel
  follow_option()
  return endpoints_now()
end

M.handle, M.mention, M.names = sessions.handle, sessions.mention, definitions.names

--- Finds what an agent needs to run in a terminal of this editor.
---@param name string
---@param cb fun(environment: mcp-tools.agents.Environment?) nil if the agent is unknown or has no environment
---@param more? { server: table, file: fun(body: table): string } further fields of TerminalEndpoint. With them the
--- agent need not be enabled; while its endpoint is closed, they are the only fields
function M.environment(name, cb, more)
  if not (enabled[name] and current.get_port() and is_open(name)) then
    local loaded = more and (enabled[name] or definitions.named(name))
    return cb(loaded and call(loaded.agent, 'environment', more) or nil)
  end
  roots.find(function(directories)
    local is_still_open = enabled[name] and current.get_port()
    local endpoint = is_still_open and vim.tbl_extend('force', endpoint_of(name, directories), more or {})
    cb(endpoint and call(enabled[name].agent, 'environment', endpoint) or nil)
  end)
end

---@class mcp-tools.agents.Status of one agent
---@field name string
---@field label string?
---@field state 'on'|'waiting'|'off' on: the agent can find this editor
---@field reason string? why the state is not `on`
---@field fault boolean? whether the reason is an error
---@field connect string? what the user does in the agent to connect it
---@field proposes string? the modes in which the agent proposes its edits in this editor
---@field files string[] discovery files
---@field sessions mcp-tools.agents.Session[]

---@param name string
---@return string[] files
---@return string? fault
local function files_of(name)
  local files, fault = {}, nil
  for path, owner in vim.spairs(owners) do
    local why = discovery_files.faults()[path]
    if owner == name and why then
      fault = ('%s: %s'):format(path, why)
    elseif owner == name then
      table.insert(files, path)
    end
  end
  return files, fault
end

---@param verdict mcp-tools.agents.Verdict
---@return mcp-tools.agents.Status
local function status_of(verdict)
  local name, agent = verdict.name, verdict.loaded and verdict.loaded.agent or {}
  local files, unwritten = files_of(name)
  local failed = current.reported.endpoints and current.reported.endpoints.failed[name]
  local fault = verdict.fault or faults[name] or failed or unwritten
  local status = {
    name = name,
    label = agent.label,
    state = 'off',
    connect = agent.connect,
    proposes = agent.proposes,
    reason = fault or verdict.skipped,
    fault = fault ~= nil or nil,
    files = files,
    sessions = editor_agents.sessions(name),
  }
  if verdict.loaded and not status.reason then
    status.reason = not current.get_port() and 'the bridge is not ready'
      or not is_open(name) and 'its endpoint is not open'
      or nil
    status.state = status.reason and 'waiting' or 'on'
  end
  return status
end

--- Returns the status of every agent that the option `agents` names.
---@return mcp-tools.agents.Status[]
function M.status()
  return vim.tbl_map(status_of, verdicts)
end

return M
