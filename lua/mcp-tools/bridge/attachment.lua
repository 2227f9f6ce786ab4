--- What the bridge says about itself: its hello, its reports, the loss of its channel.

local current = require('mcp-tools.bridge.current')
local identity = require('mcp-tools.instances.identity')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.instances.project')

local M = {}

local UNAFFECTED = '. Clients connected by :McpTools connect are not affected, except over HTTP: those need the new'
  .. ' token (:McpTools endpoint). Or set bridge.port to a free port'

---@class mcp-tools.bridge.Hello what the bridge tells when it attaches
---@field pid integer
---@field port integer
---@field wanted_port integer
---@field port_holder 'none'|'ours'|'stranger' who had the wanted port
---@field launch? string what this editor gave to the process that it started; nil before 0.2
---@field versions table<string, string>

--- The process is gone: forget what was true for it alone.
function M.reset()
  local said = current.said
  said.channel, said.hello, said.port, said.sessions, said.endpoints = nil, {}, nil, nil, nil
  said.integrations = nil
end

--- A new token when a stranger had our port and may have been sent the old one.
---@param info mcp-tools.bridge.Hello
---@return string?
local function new_token(info)
  local said, mine = current.said, current.prepared.identity
  local wanted = info.wanted_port
  if info.port_holder ~= 'stranger' then
    said.note = nil
    identity.served(mine, info.port)
    return nil
  end
  local is_new = mine.kept_from == wanted or mine.token == current.adopted
  current.adopted = nil
  if is_new then
    -- The token was made because of it, or just now because of another port.
    local text = 'another program uses port %d, so the bridge listens on %d; set bridge.port to a free port'
    notify.once('port', 'warn', text:format(wanted, info.port))
    return nil
  end
  local ok, err = identity.renew_token(mine, wanted)
  if not ok then
    error(err, 0) -- better no bridge than one behind a token that a stranger may know
  end
  local text = 'another program uses port %d and may have seen the token: the bridge listens on %d with a new token'
  said.note = text:format(wanted, info.port)
  notify.warn(said.note .. UNAFFECTED)
  return mine.token
end

--- A bridge has attached (rpc/, `hello`).
---@param channel integer
---@param info mcp-tools.bridge.Hello
---@return string? token a new one
function M.attached(channel, info)
  local process = current.supervisor.process
  local ours = process and info.launch == current.prepared.launch
  if process and info.launch == nil then
    -- An older bridge, of `bridge.command`, does not report it; that program may be a wrapper, with another pid.
    ours = process.pid == info.pid or current.prepared.source == 'command'
  end
  if not ours then
    log.info('a bridge that this editor has not started is attached (pid %s)', tostring(info.pid))
    project.fix(project.root())
    return nil
  end
  local said = current.said
  said.channel, said.hello, said.port = channel, info, info.port
  return new_token(info)
end

---@param channel integer
function M.detached(channel)
  if current.said.channel == channel then
    current.said.channel = nil
    current.changed()
  end
end

--- A client has connected: the bridge of this project loads the MCP SDK when it starts next time.
function M.client_seen()
  if current.prepared then
    identity.connected(current.prepared.identity)
  end
end

---@type table<string, fun(data: table)>
local reports = {
  listening = function(data)
    current.said.port = data.port
    identity.served(current.prepared.identity, data.port)
    log.info('the bridge listens on port %d as well', data.port)
    current.publish()
    current.changed()
  end,
  port_taken = function(data)
    local mine, port = current.prepared.identity, data.port
    local stored = identity.load(mine.root)
    if not stored or stored.token ~= mine.token or stored.kept_from == port then
      return -- another editor has made a new token, or this one when its bridge attached
    end
    local ok, err = identity.renew_token(stored, port) -- whoever watches the file restarts its bridge
    local text = ok and 'another program uses port %d and may have seen the token: a new one was made'
      or 'another program uses port %d and may have seen the token, but a new one cannot be made: %s'
    notify.warn(text:format(port, err) .. (ok and UNAFFECTED or ''))
  end,
  endpoints = function(data)
    current.said.endpoints = { open = data.open or {}, failed = data.failed or {} }
    current.changed()
  end,
  integrations = function(data)
    current.said.integrations = data.servers or {}
    current.changed()
  end,
  sessions = function(data)
    current.said.sessions = data
    if data.count > 0 then
      M.client_seen()
    end
    current.changed('clients')
  end,
  blocked = function(data)
    current.said.blocked = data
    log.warn('the editor kept a call waiting too long, in mode "%s"', tostring(data.mode))
  end,
}

--- The bridge tells what it sees (rpc/, `report`).
---@param kind string
---@param data table
---@param channel? integer whose
function M.reported(kind, data, channel)
  local handler = reports[kind]
  if channel ~= current.said.channel then
    log.debug('a bridge that this editor has not started reports %s', tostring(kind))
  elseif handler then
    handler(data)
  else
    log.debug('the bridge reports %s, which this version does not know', tostring(kind))
  end
end

return M
