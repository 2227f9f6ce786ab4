--- State of this editor's bridge: process, launch, port, token, endpoint and status; what it reports; and how agents
--- reach it.

local config = require('mcp-tools.config')
local errors = require('mcp-tools.errors')
local identity = require('mcp-tools.instances.identity')
local instances = require('mcp-tools.instances.file')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.instances.project')

---@alias mcp-tools.bridge.State
---| 'stopped' nothing runs
---| 'starting' a process runs, or its command is being looked up
---| 'ready' the process listens
---| 'waiting' the process crashed; the next attempt follows
---| 'stopping' the process is ending
---| 'failed' no further attempts; `last_error` says why

---@class mcp-tools.bridge.Current
---@field state mcp-tools.bridge.State
---@field process? mcp-tools.bridge.Process
---@field port? integer nil until the process is ready
---@field tries integer restarts since a process last ran stably
---@field last_error? string
---@field launch? mcp-tools.bridge.Launch of the last start
---@field fault? mcp-tools.bridge.PythonFault
---@field reported mcp-tools.bridge.Reported
---@field adopted? string token made by another editor, for which the bridge restarts
local M = { state = 'stopped', tries = 0, reported = { hello = {} } }

---@class mcp-tools.bridge.Reported what the bridge has reported
---@field channel? integer
---@field hello mcp-tools.bridge.Hello|{} empty until the bridge has attached
---@field port? integer that clients should use
---@field sessions? { count: integer, calls: integer, clients: table[] }
---@field blocked? { mode: string, at: integer } the last time the editor kept a call waiting too long
---@field note? string why the token was replaced
---@field integrations? table[] servers of agents with which it registers: `url`, `state`, `fault`
---@field endpoints? mcp-tools.bridge.ReportedEndpoints of agents

---@class mcp-tools.bridge.ReportedEndpoints
---@field open string[] names of agents
---@field failed table<string, string> name → why the endpoint could not be opened

local hook_token ---@type string?

--- Returns the token of agents' hooks, which may report events and receive context, but call no tools; nil if all hooks
--- are off. Each Neovim makes its own, and a new one after the hooks were off.
---@return string?
function M.hook_token()
  local options = config.get('hooks')
  if not (options.context or options.diagnostics or options.reminder) then
    hook_token = nil
  elseif not hook_token then
    hook_token = vim.text.hexencode(assert(vim.uv.random(32)))
    log.hide(hook_token)
  end
  return hook_token
end

--- Maximum number of tokens of agents; the one unused for longest is revoked.
local MAX_ACP_TOKENS = 64
--- Tokens of agents that plugins start over ACP, the one unused for longest first.
local acp_tokens = {} ---@type string[]

local listeners = {} ---@type (fun(what: 'clients'?))[]

--- Calls `fn` on every state change.
---@param fn fun(what: 'clients'?) `clients`: only the list of connected clients changed
---@return fun() stop
function M.on_change(fn)
  table.insert(listeners, fn)
  return function()
    listeners = vim.tbl_filter(function(other)
      return other ~= fn
    end, listeners)
  end
end

--- Notifies the listeners.
---@param what? 'clients'
function M.changed(what)
  for _, fn in ipairs(listeners) do
    log.guard('a listener of the bridge', fn, what)
  end
end

--- Sends a notification to the attached bridge.
---@param event string
---@param ... any
---@return boolean sent false without a bridge, or if its channel has just been closed
function M.send(event, ...)
  local channel = M.reported.channel
  return channel ~= nil and (pcall(vim.rpcnotify, channel, event, ...))
end

--- Returns whether a process is starting or ready.
---@return boolean
function M.is_running()
  return M.process ~= nil and M.state ~= 'stopping'
end

--- Returns the names of the connected clients.
---@return string[]
function M.client_names()
  local sessions = M.reported.sessions
  return vim.tbl_map(function(client)
    return tostring(client.name or '?')
  end, sessions and sessions.clients or {})
end

--- Returns the port for clients; nil until the bridge is ready.
---@return integer?
function M.get_port()
  return M.state == 'ready' and (M.reported.port or M.port) or nil
end

--- Returns the token of the current bridge.
---@return string?
function M.get_auth_token()
  return M.is_running() and M.launch and M.launch.identity.token or nil
end

--- Returns how clients connect; nil until the bridge is ready.
---@return { url: string, token: string, port: integer }?
function M.endpoint()
  local port, launch = M.get_port(), M.launch
  if port then
    local host = launch.host:find(':', 1, true) and ('[%s]'):format(launch.host) or launch.host
    return { url = ('http://%s:%d/mcp'):format(host, port), token = launch.identity.token, port = port }
  end
end

--- Name of our server in the configuration of agents.
local NAME = 'nvim-tools'

--- Variables that locate the instance file, which has the token; agents do not pass on their whole environment.
local VARIABLES = { 'XDG_RUNTIME_DIR', 'XDG_STATE_HOME', 'NVIM_APPNAME' }

---@class mcp-tools.bridge.Relay
---@field command string
---@field args string[]
---@field env table<string, string>

--- Returns the command that relays MCP between its stdin and stdout and this editor's bridge. It runs isolated (`-I`)
--- because agents start it in the project's directory, and takes the token from this editor's instance file.
---@return mcp-tools.bridge.Relay? relay nil with `bridge.command`, which does not name a Python
function M.relay()
  local launch = M.launch
  if not launch or launch.source == 'command' then
    return nil
  end
  local env = vim.empty_dict() --[[@as table<string, string>]]
  for _, name in ipairs(VARIABLES) do
    env[name] = vim.env[name]
  end
  return {
    command = vim.fn.exepath(launch.spec.command[1]),
    args = { '-I', project.python_package(), 'stdio', '--instance', tostring(vim.uv.os_getpid()) },
    env = env,
  }
end

--- Returns an MCP server entry for the Agent Client Protocol (`session/new`, `mcpServers`).
---@param transport string
---@return table? entry
---@return mcp-tools.Error? err
function M.acp_entry(transport)
  local endpoint = M.endpoint()
  if transport ~= 'http' and transport ~= 'stdio' then
    local text = 'transport: must be "http" or "stdio", got "%s"'
    return nil, errors.new('validation_error', text:format(tostring(transport)))
  elseif not endpoint then
    return nil, errors.new('busy', 'the bridge is not ready; start it with start() or :McpTools start')
  elseif transport == 'http' then
    local token = vim.text.hexencode(assert(vim.uv.random(32)))
    log.hide(token)
    table.insert(acp_tokens, token)
    if #acp_tokens > MAX_ACP_TOKENS then
      table.remove(acp_tokens, 1)
      log.warn('revoked one of more than %d acp_server() tokens; call acp_revoke() when an agent ends', MAX_ACP_TOKENS)
    end
    M.send_acp_tokens()
    local headers = { { name = 'Authorization', value = 'Bearer ' .. token } }
    return { type = 'http', name = NAME, url = endpoint.url, headers = headers }
  end
  local relay, env = M.relay(), {}
  if not relay then
    return nil, errors.new('validation_error', 'transport: must be "http" with the option bridge.command')
  end
  for name, value in vim.spairs(relay.env) do
    table.insert(env, { name = name, value = value })
  end
  -- ACP v2 requires `type`; agents of v1 ignore it here.
  return { type = 'stdio', name = NAME, command = relay.command, args = relay.args, env = env }
end

--- Revokes the token of an entry of `acp_entry`, and ends its sessions.
---@param entry table
function M.revoke_acp(entry)
  local header = (entry.headers or {})[1] or {}
  local kept = vim.tbl_filter(function(token)
    return header.value ~= 'Bearer ' .. token
  end, acp_tokens)
  if #kept < #acp_tokens then
    acp_tokens = kept
    M.send_acp_tokens()
  end
end

--- Moves the tokens of connected agents to the end.
---@param clients table[]
local function order_acp_tokens(clients)
  local connected, used, unused = {}, {}, {}
  for _, client in ipairs(clients) do
    connected[client.holder or ''] = true
  end
  for _, token in ipairs(acp_tokens) do
    table.insert(connected[vim.fn.sha256(token)] and used or unused, token)
  end
  acp_tokens = vim.list_extend(unused, used)
end

--- Sends the bridge the tokens of agents, which it does not store.
function M.send_acp_tokens()
  M.send('acp_tokens', acp_tokens)
end

local announcers = {} ---@type (fun(): string?)[]

--- Adds text to the message that the bridge is ready.
---@param fn fun(): string?
function M.on_announce(fn)
  table.insert(announcers, fn)
end

--- Updates the instance file.
function M.publish()
  local endpoint = M.endpoint()
  if endpoint then
    instances.publish({
      root = M.launch.identity.root,
      socket = M.launch.socket,
      url = endpoint.url,
      port = endpoint.port,
      token = endpoint.token,
      boot = project.boot,
      hook = M.hook_token() or vim.NIL,
    })
  end
end

--- Applies the options of agents' hooks.
function M.follow_hooks()
  M.send('hook_token', M.hook_token() or '')
  M.publish()
end

--- Reports that the bridge is ready.
---@param is_visible? boolean as a notification; otherwise in the log
function M.announce(is_visible)
  notify.forget('bridge')
  local texts = { ('ready: %s'):format(M.endpoint().url) }
  for _, announcer in ipairs(announcers) do
    table.insert(texts, announcer())
  end
  local text = table.concat(texts, '; ')
  if is_visible or config.get('bridge.log_level') == 'debug' then
    notify.info(text)
  else
    log.info('%s', text)
  end
end

---@class mcp-tools.bridge.Status
---@field state mcp-tools.bridge.State
---@field running boolean
---@field attached boolean
---@field url? string
---@field port? integer
---@field wanted_port? integer
---@field port_holder? string
---@field root? string
---@field pid? integer
---@field source? 'command'|'python'|'environment'
---@field command? string[]
---@field python_version? string
---@field fault? mcp-tools.bridge.PythonFault
---@field tries integer
---@field last_error? string
---@field refusal? string why the last `setup()` was refused
---@field versions table<string, string>
---@field sessions? { count: integer, calls: integer, clients: table[] }
---@field blocked? { mode: string, at: integer }
---@field note? string
---@field identity_file? string
---@field to_do? string how to make it run

--- Returns what the user can do to make the bridge run.
---@return string?
local function to_do()
  if M.state == 'failed' then
    return M.fault.advice
  elseif M.state == 'stopped' and config.refusal() then
    return 'Correct these options, then restart Neovim; :checkhealth mcp-tools lists each of them'
  end
  return M.state == 'stopped' and ':McpTools start' or nil
end

--- Returns everything about the bridge for health and `:McpTools status`; never the token.
---@return mcp-tools.bridge.Status
function M.status()
  local reported, launch = M.reported, M.launch
  local endpoint, own_identity = M.endpoint() or {}, launch and launch.identity or {}
  local versions = reported.hello.versions or {}
  return {
    state = M.state,
    running = M.is_running(),
    attached = reported.channel ~= nil,
    url = endpoint.url,
    port = endpoint.port,
    wanted_port = reported.hello.wanted_port or own_identity.port,
    port_holder = reported.hello.port_holder,
    root = own_identity.root,
    pid = M.process and M.process.pid,
    source = launch and launch.source,
    command = launch and launch.spec.command,
    python_version = versions.python or (launch and launch.version),
    fault = M.fault,
    tries = M.tries,
    last_error = M.last_error,
    refusal = config.refusal() and config.refusal():gsub('\n%s+', ' ') or nil, -- one line
    versions = versions,
    sessions = reported.sessions,
    blocked = reported.blocked,
    note = reported.note,
    identity_file = own_identity.path,
    to_do = to_do(),
  }
end

local UNAFFECTED = '. Clients connected by :McpTools connect are not affected, except over HTTP: those need the new'
  .. ' token (:McpTools endpoint). To avoid this, set bridge.port to a free port'

---@class mcp-tools.bridge.Hello sent by the bridge when it attaches
---@field pid integer
---@field port integer
---@field wanted_port integer
---@field port_holder 'none'|'ours'|'foreign' the process that had the wanted port
---@field launch? string the key of the start; nil if the process does not report it
---@field versions table<string, string>

--- Forgets the state of the ended process.
function M.reset()
  local reported = M.reported
  reported.channel, reported.hello, reported.port, reported.sessions, reported.endpoints = nil, {}, nil, nil, nil
  reported.integrations = nil
end

--- Makes a new token if a foreign process had our port and may have received the old one.
---@param info mcp-tools.bridge.Hello
---@return string?
local function new_token(info)
  local reported, own_identity = M.reported, M.launch.identity
  local wanted = info.wanted_port
  if info.port_holder ~= 'foreign' then
    reported.note = nil
    identity.served(own_identity, info.port)
    return nil
  end
  local is_replaced = own_identity.kept_from == wanted or own_identity.token == M.adopted
  M.adopted = nil
  if is_replaced then
    -- The token was already replaced because of this port, or another editor has just made it.
    local text = 'another process uses port %d, so the bridge listens on %d; set bridge.port to a free port'
    notify.once('port', 'warn', text:format(wanted, info.port))
    return nil
  end
  local ok, err = identity.renew_token(own_identity, wanted)
  if not ok then
    error(err, 0) -- no bridge may run with a token that a foreign process may know
  end
  local text = 'another process uses port %d and may know the token: the bridge listens on %d with a new token'
  reported.note = text:format(wanted, info.port)
  notify.warn(reported.note .. UNAFFECTED)
  return own_identity.token
end

--- Handles the attachment of a bridge (`hello`).
---@param channel integer
---@param info mcp-tools.bridge.Hello
---@return string? token a new one for the bridge
function M.attached(channel, info)
  local process = M.process
  local ours = process and info.launch == M.launch.key
  if process and info.launch == nil then
    -- A bridge from `bridge.command` may not report the key; the command may be a wrapper with another pid.
    ours = process.pid == info.pid or M.launch.source == 'command'
  end
  if not ours then
    log.info('a bridge that this editor has not started is attached (pid %s)', tostring(info.pid))
    project.fix(project.root())
    return nil
  end
  local reported = M.reported
  reported.channel, reported.hello, reported.port = channel, info, info.port
  return new_token(info)
end

--- Handles the loss of a channel.
---@param channel integer
function M.detached(channel)
  if M.reported.channel == channel then
    M.reported.channel = nil
    M.changed()
  end
end

--- Records that a client has connected: the next bridge of this project loads the MCP SDK at its start.
function M.client_connected()
  if M.launch then
    identity.connected(M.launch.identity)
  end
end

---@type table<string, fun(data: table)>
local reports = {
  listening = function(data)
    M.reported.port = data.port
    identity.served(M.launch.identity, data.port)
    log.info('the bridge also listens on port %d', data.port)
    M.publish()
    M.changed()
  end,
  port_taken = function(data)
    local own_identity, port = M.launch.identity, data.port
    local stored = identity.load(own_identity.root)
    if not stored or stored.token ~= own_identity.token or stored.kept_from == port then
      return -- the token was already replaced, by another editor or when this bridge attached
    end
    local ok, err = identity.renew_token(stored, port) -- editors that watch the file restart their bridges
    local text = ok and 'another process uses port %d and may know the token, so it was replaced'
      or 'another process uses port %d and may know the token, but it cannot be replaced: %s'
    notify.warn(text:format(port, err) .. (ok and UNAFFECTED or ''))
  end,
  endpoints = function(data)
    M.reported.endpoints = { open = data.open or {}, failed = data.failed or {} }
    M.changed()
  end,
  integrations = function(data)
    M.reported.integrations = data.servers or {}
    M.changed()
  end,
  sessions = function(data)
    M.reported.sessions = data
    order_acp_tokens(data.clients)
    if data.count > 0 then
      M.client_connected()
    end
    M.changed('clients')
  end,
  blocked = function(data)
    M.reported.blocked = data
    log.warn("the editor kept a call waiting too long, in mode '%s'", tostring(data.mode))
  end,
}

--- Handles a report of the bridge (`report`).
---@param name string
---@param data table
---@param channel? integer of the bridge
function M.report(name, data, channel)
  local handler = reports[name]
  if channel ~= M.reported.channel then
    log.debug("a bridge that this editor has not started reports '%s'", tostring(name))
  elseif handler then
    handler(data)
  else
    log.debug("the bridge reports '%s', which is unknown", tostring(name))
  end
end

return M
