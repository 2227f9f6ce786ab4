--- Temporary decisions of the user: permissions for a session, late answers for the next try, silenced sessions.

local canonical_json = require('mcp-tools.util.canonical_json')
local lru = require('mcp-tools.util.lru')
local source = require('mcp-tools.registry.source')

local M = {}

--- Maximum number of sessions with permissions; the oldest is dropped.
local MAX_SESSIONS = 256
--- Maximum number of unanswered questions; the oldest are dropped.
local MAX_UNANSWERED = 20
--- How long a late approval is valid, in seconds.
M.LATE_SECONDS = 600
--- Denials in a row after which the user can silence the session.
M.SILENCE_AFTER = 3

---@class mcp-tools.Unanswered a question that the user did not answer in time
---@field asked mcp-tools.Asked
---@field decision mcp-tools.Decision
---@field identity string of the tool's definition
---@field targets string
---@field at integer unix seconds
---@field granted_at integer? unix seconds: the next try is allowed, for LATE_SECONDS

---@class mcp-tools.Grants
---@field sessions table<string, table<string, { hash: string, paths: string[]?, all: boolean }>> by session
---@field order string[] sessions, oldest first
---@field unanswered mcp-tools.Unanswered[] oldest first
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

--- Joins the resolved files of a call. If a symlink changes, the same arguments are a different call.
---@param targets mcp-tools.CallTarget[]
---@return string
local function text_of(targets)
  local list = {}
  for i, target in ipairs(targets) do
    list[i] = target.path or target.given
  end
  return table.concat(list, '\0')
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

-- The next try -----------------------------------------------------------------------------------------------------

--- Returns whether a question was about this tool with these arguments.
---@param item mcp-tools.Unanswered
---@param call mcp-tools.Call
---@return boolean
local function has_args(item, call)
  local before = item.asked.call
  return before.project == call.project
    and before.definition.name == call.definition.name
    and call.snapshot ~= nil
    and canonical_json.same(before.snapshot, call.snapshot)
end

--- Returns whether two calls are of the same client: of the same session, or of the same name.
---@param before mcp-tools.Call
---@param call mcp-tools.Call
---@return boolean
local function has_client(before, call)
  local name = before.client.name
  return before.host == call.host and name == call.client.name and (name ~= nil or before.session == call.session)
end

--- Returns whether a question was about exactly this call of this client.
---@param item mcp-tools.Unanswered
---@param call mcp-tools.Call
---@param targets mcp-tools.CallTarget[]
local function is_same(item, call, targets)
  return has_args(item, call)
    and has_client(item.asked.call, call)
    and item.identity == identity_of(call.definition)
    and item.targets == text_of(targets)
end

--- Stores a question that was not answered in time.
---@param asked mcp-tools.Asked
---@param decision mcp-tools.Decision
function Grants:missed(asked, decision)
  local call, targets = asked.call, decision.targets
  if not call.snapshot then
    return -- without a snapshot the next try cannot be recognized
  end
  for i, item in ipairs(self.unanswered) do
    if is_same(item, call, targets) then
      table.remove(self.unanswered, i)
      break
    end
  end
  table.insert(self.unanswered, {
    asked = asked,
    decision = decision,
    identity = identity_of(call.definition),
    targets = text_of(targets),
    at = os.time(),
  })
  if #self.unanswered > MAX_UNANSWERED then
    table.remove(self.unanswered, 1)
  end
end

--- Returns whether the user has allowed the next try, and this is still valid.
---@param item mcp-tools.Unanswered
---@return boolean
function M.is_granted(item)
  return item.granted_at ~= nil and os.time() - item.granted_at <= M.LATE_SECONDS
end

--- Uses up the user's permission for this call, if it was given after the question had ended.
---@param call mcp-tools.Call
---@param targets mcp-tools.CallTarget[]
---@return boolean granted
function Grants:use_late_approval(call, targets)
  for i, item in ipairs(self.unanswered) do
    if M.is_granted(item) and is_same(item, call, targets) then
      table.remove(self.unanswered, i)
      call.approved_preview = item.asked.call.approved_preview
      return true
    end
  end
  return false
end

--- Removes an unanswered question.
---@param item mcp-tools.Unanswered
function Grants:drop(item)
  self.unanswered = vim.tbl_filter(function(other)
    return other ~= item
  end, self.unanswered)
end

--- Removes unanswered questions of the client with the same arguments, after one was answered.
---@param call mcp-tools.Call
function Grants:forget_unanswered(call)
  self.unanswered = vim.tbl_filter(function(item)
    return not (has_args(item, call) and has_client(item.asked.call, call))
  end, self.unanswered)
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
  self.sessions, self.order, self.unanswered = {}, {}, {}
  self:unsilence()
end

return M
