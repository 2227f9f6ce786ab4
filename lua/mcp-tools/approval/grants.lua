--- Temporary decisions of the user: permissions for a session, and silenced sessions.

local canonical_json = require('mcp-tools.util.canonical_json')
local lru = require('mcp-tools.util.lru')
local source = require('mcp-tools.registry.source')

local M = {}

--- Maximum number of sessions with permissions; the oldest is dropped.
local MAX_SESSIONS = 256
--- Denials in a row after which the user can silence the session.
M.SILENCE_AFTER = 3

---@class mcp-tools.Grants
---@field sessions table<string, table<string, { hash: string, paths: string[]?, all: boolean }>> by session
---@field order string[] sessions, oldest first
---@field denials mcp-tools.Lru count by session
---@field silenced table<string, string> session → the client's name
local Grants = {}
Grants.__index = Grants

---@return mcp-tools.Grants
function M.new()
  local self = setmetatable({}, Grants)
  self:reset()
  return self
end

--- Returns the session; without one, a key for all calls of clients with the same name.
---@param call mcp-tools.Call
---@return string
local function session_key(call)
  return call.session or ('without a session, by %s %s'):format(call.host, call.client.name or '')
end

--- Identifies a definition by its source and content.
---@param definition mcp-tools.Definition
---@return string
local function identity_of(definition)
  return source.key(definition) .. ' ' .. canonical_json.fingerprint(definition)
end

-- Sessions ---------------------------------------------------------------------------------------------------------

--- Allows a session to use a tool: with all files of the project, or with these.
---@param call mcp-tools.Call
---@param paths? string[]
function Grants:allow_session(call, paths)
  local session, definition = session_key(call), call.definition
  if not self.sessions[session] then
    self.sessions[session] = {}
    table.insert(self.order, session)
    if #self.order > MAX_SESSIONS then
      self.sessions[table.remove(self.order, 1)] = nil
    end
  end
  local name, hash = definition.name, identity_of(definition)
  local grant = self.sessions[session][name]
  if not grant or grant.hash ~= hash then
    grant = { hash = hash, paths = {}, all = false }
    self.sessions[session][name] = grant
  end
  grant.all = grant.all or not paths
  for _, path in ipairs(paths or {}) do
    if not vim.list_contains(grant.paths, path) then
      table.insert(grant.paths, path)
    end
  end
end

--- Removes the permissions of all sessions for a tool.
---@param name string
function Grants:revoke(name)
  for _, granted in pairs(self.sessions) do
    granted[name] = nil
  end
end

local CHANGED = { changed = true }

--- Returns the session's permission for the tool of a call.
---@param call mcp-tools.Call
---@return { all: boolean?, paths: string[]?, changed: boolean? }?
function Grants:of_session(call)
  local granted = self.sessions[session_key(call)]
  local grant = granted and granted[call.definition.name]
  if not grant then
    return nil
  end
  return grant.hash == identity_of(call.definition) and grant or CHANGED
end

--- Returns the number of sessions with a permission for a tool.
---@param name string
---@return integer
function Grants:count(name)
  local count = 0
  for _, granted in pairs(self.sessions) do
    count = count + (granted[name] and 1 or 0)
  end
  return count
end

-- Denials ----------------------------------------------------------------------------------------------------------

--- Counts a denial.
---@param call mcp-tools.Call
---@return integer count denials in a row in this session
function Grants:denied(call)
  local session = session_key(call)
  local count = (self.denials:get(session) or 0) + 1
  self.denials:set(session, count)
  return count
end

--- Resets the number of denials, after a call was allowed.
---@param call mcp-tools.Call
function Grants:allowed(call)
  self.denials:set(session_key(call), nil)
end

--- Returns whether the user may silence this session.
---@param call mcp-tools.Call
---@return boolean
function Grants:can_silence(call)
  return (self.denials:get(session_key(call)) or 0) >= M.SILENCE_AFTER
end

--- Denies all further questions of this session.
---@param call mcp-tools.Call
function Grants:silence(call)
  self.silenced[session_key(call)] = call.client.name or call.host
end

---@param call mcp-tools.Call
---@return boolean
function Grants:is_silenced(call)
  return self.silenced[session_key(call)] ~= nil
end

--- Allows all sessions to ask again.
function Grants:unsilence()
  self.silenced, self.denials = {}, lru(MAX_SESSIONS)
end

--- Forgets everything.
function Grants:reset()
  self.sessions, self.order = {}, {}
  self:unsilence()
end

return M
