--- Handles what the bridge reports: its hello, later reports, and the loss of its channel.

local current = require('mcp-tools.bridge.current')
local identity = require('mcp-tools.instances.identity')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.instances.project')

local M = {}

local UNAFFECTED = '. Clients connected by :McpTools connect are not affected, except over HTTP: those need the new'
  .. ' token (:McpTools endpoint). Or set bridge.port to a free port'

---@class mcp-tools.bridge.Hello sent by the bridge when it attaches
---@field pid integer
---@field port integer
---@field wanted_port integer
---@field port_holder 'none'|'ours'|'foreign' the process that had the wanted port
---@field launch? string the key of the start; nil if the process does not report it
---@field versions table<string, string>

--- Forgets the state of the ended process.
function M.reset()
  local reported = current.reported
  reported.channel, reported.hello, reported.port, reported.sessions, reported.endpoints = nil, {}, nil, nil, nil
  reported.integrations = nil
end

--- Makes a new token if a foreign process had our port and may have received the old one.
---@param info mcp-tools.bridge.Hello
---@return string?
local function new_token(info)
  local reported, own_identity = current.reported, current.launch.identity
  local wanted = info.wanted_port
  if info.port_holder ~= 'foreign' then
    reported.note = nil
    identity.served(own_identity, info.port)
    return nil
  end
  local is_new = own_identity.kept_from == wanted or own_identity.token == current.adopted
  current.adopted = nil
  if is_new then
    -- The token was already replaced because of this port, or just now because of another one.
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
  local process = current.supervisor.process
  local ours = process and info.launch == current.launch.key
  if process and info.launch == nil then
    -- A bridge from `bridge.command` may not report the key; the command may be a wrapper with another pid.
    ours = process.pid == info.pid or current.launch.source == 'command'
  end
  if not ours then
    log.info('a bridge that this editor has not started is attached (pid %s)', tostring(info.pid))
    project.fix(project.root())
    return nil
  end
  local reported = current.reported
  reported.channel, reported.hello, reported.port = channel, info, info.port
  return new_token(info)
end

--- Handles the loss of a channel.
---@param channel integer
function M.detached(channel)
  if current.reported.channel == channel then
    current.reported.channel = nil
    current.changed()
  end
end

--- Records that a client has connected: the next bridge of this project loads the MCP SDK at its start.
function M.client_connected()
  if current.launch then
    identity.connected(current.launch.identity)
  end
end

---@type table<string, fun(data: table)>
local reports = {
  listening = function(data)
    current.reported.port = data.port
    identity.served(current.launch.identity, data.port)
    log.info('the bridge also listens on port %d', data.port)
    current.publish()
    current.changed()
  end,
  port_taken = function(data)
    local own_identity, port = current.launch.identity, data.port
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
    current.reported.endpoints = { open = data.open or {}, failed = data.failed or {} }
    current.changed()
  end,
  integrations = function(data)
    current.reported.integrations = data.servers or {}
    current.changed()
  end,
  sessions = function(data)
    current.reported.sessions = data
    if data.count > 0 then
      M.client_connected()
    end
    current.changed('clients')
  end,
  blocked = function(data)
    current.reported.blocked = data
    log.warn("the editor kept a call waiting too long, in mode '%s'", tostring(data.mode))
  end,
}

--- Handles a report of the bridge (`report`).
---@param name string
---@param data table
---@param channel? integer of the bridge
function M.reported(name, data, channel)
  local handler = reports[name]
  if channel ~= current.reported.channel then
    log.debug("a bridge that this editor has not started reports '%s'", tostring(name))
  elseif handler then
    handler(data)
  else
    log.debug("the bridge reports '%s', which is unknown", tostring(name))
  end
end

return M
