-- Receives what the bridge of this editor says about itself: hello, reports, the loss of its channel. Sends the facts
-- to control.lua, and a new token when the old one may have reached a stranger.
-- Does not know about processes; a bridge that this editor has not started does not come here.

local identity = require('mcp-tools.bridge.identity')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')

---@class mcp-tools.bridge.Hello what the bridge tells when it attaches
---@field pid integer
---@field port integer
---@field wanted_port integer
---@field port_holder 'none'|'ours'|'stranger' who had the wanted port
---@field versions table<string, string>

---@class mcp-tools.bridge.Attachment
---@field channel? integer
---@field hello mcp-tools.bridge.Hello|{} empty until it has attached
---@field port? integer the one that clients should use
---@field sessions? { count: integer, calls: integer, clients: table[] }
---@field blocked? { mode: string, at: integer } the last time the editor kept the bridge waiting
---@field note? string why the token is a new one
---@field _renewed? { port: integer, token: string } made for this held port, and not sent there by anyone since
local Attachment = {}
Attachment.__index = Attachment

---@return mcp-tools.bridge.Attachment
function Attachment.new()
  return setmetatable({ hello = {} }, Attachment)
end

--- The process is gone: forget what was true for it alone.
function Attachment:reset()
  self.channel, self.hello, self.port, self.sessions = nil, {}, nil, nil
end

---@param channel integer
---@param hello mcp-tools.bridge.Hello
---@param project mcp-tools.bridge.Identity its token is renewed in place
---@return string? token a new one
function Attachment:attach(channel, hello, project)
  self.channel, self.hello, self.port = channel, hello, hello.port
  local held, renewed = hello.port_holder == 'stranger', self._renewed
  if held and renewed and renewed.port == hello.wanted_port and renewed.token == project.token then
    return nil -- after a restart: the token is the one that was made because of it
  end
  self.note, self._renewed = nil, nil
  if not held then
    return nil
  end
  local ok, err = identity.renew_token(project)
  if not ok then
    error(err, 0) -- better no bridge than one behind a token that a stranger may know
  end
  self._renewed = { port = hello.wanted_port, token = project.token }
  local text = 'port %d is held by a program that is not ours, so clients may have sent it the token: '
    .. 'a new token was made and the bridge listens on %d'
  self.note = text:format(hello.wanted_port, hello.port)
  notify.warn(self.note, 'Give clients the new token (:McpTools endpoint)')
  return project.token
end

---@param channel integer
function Attachment:detach(channel)
  if self.channel == channel then
    self.channel = nil
  end
end

---@type table<string, fun(self: mcp-tools.bridge.Attachment, data: table)>
local reports = {
  listening = function(self, data)
    self.port = data.port
    self._renewed = nil -- from now on clients send the token there
    log.info('the bridge listens on port %d as well', data.port)
  end,
  sessions = function(self, data)
    self.sessions = data
  end,
  blocked = function(self, data)
    self.blocked = data
    log.warn('the editor kept a call waiting too long, in mode "%s"', tostring(data.mode))
  end,
}

---@param kind string
---@param data table
function Attachment:report(kind, data)
  local handler = reports[kind]
  if handler then
    handler(self, data)
  else
    log.debug('the bridge reports %s, which this version does not know', tostring(kind))
  end
end

return Attachment
