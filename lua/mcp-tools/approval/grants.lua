--- Grants for a while: what the person decided for a session, for one more try, or never to be asked again by one.

local canonical_json = require('mcp-tools.util.canonical_json')
local denial = require('mcp-tools.approval.denial')
local rules = require('mcp-tools.approval.rules')
local source = require('mcp-tools.registry.source')

local M = {}

--- Sessions that are remembered; beyond it the one granted longest ago is asked again.
local MAX_SESSIONS = 256
--- Questions without an answer that are shown; the oldest give way.
local MAX_UNANSWERED = 20
--- Denials in a row after which it is offered not to be asked again.
M.PATIENCE = 3
--- Sessions whose denials are counted at a time.
M.MAX_DENIED = 256

---@class mcp-tools.Unanswered a question that nobody answered in time
---@field tool string
---@field source string
---@field hash string
---@field args table a snapshot, see util/canonical_json.lua
---@field targets string
---@field client table
---@field at integer unix seconds
---@field granted boolean? the next try may run, whoever makes it
---@field choices mcp-tools.Choice[] what could have been answered
---@field files string[]? that a yes would have been for; nil: for the tool
---@field key string? of the call, where "always" is about this call
---@field definition mcp-tools.Definition
---@field project string
---@field remedy string? the line of configuration that would let the tool run

---@class mcp-tools.Grants
---@field sessions table<string, table<string, { hash: string, paths: table<string, true>?, all: boolean }>> by party
---@field order string[] sessions, the one granted longest ago first
---@field unanswered mcp-tools.Unanswered[] oldest first
---@field denials table<string, integer>
---@field silenced table<string, string> session → the client's name
local Grants = {}
Grants.__index = Grants

---@return mcp-tools.Grants
function M.new()
  return setmetatable({ sessions = {}, order = {}, unanswered = {}, denials = {}, silenced = {} }, Grants)
end

--- Who calls: a session, or without one all calls of clients that use the same name.
---@param call mcp-tools.Call
---@return string
local function party(call)
  return call.session or ('without a session, by %s %s'):format(call.host, call.client.name or '')
end

--- Files that a call names, as one text; the same call after a link was moved is another one.
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

--- Lets a session run a tool: with any files of the project, or with these.
---@param call mcp-tools.Call
---@param paths? string[]
function Grants:allow_session(call, paths)
  local session, definition = party(call), call.definition
  if not self.sessions[session] then
    self.sessions[session] = {}
    table.insert(self.order, session)
    if #self.order > MAX_SESSIONS then
      self.sessions[table.remove(self.order, 1)] = nil
    end
  end
  local name, hash = definition.name, source.key(definition) .. ' ' .. canonical_json.fingerprint(definition)
  local grant = self.sessions[session][name]
  if not grant or grant.hash ~= hash then
    grant = { hash = hash, paths = {}, all = false }
    self.sessions[session][name] = grant
  end
  grant.all = grant.all or not paths
  for _, path in ipairs(paths or {}) do
    grant.paths[path] = true
  end
end

local CHANGED = { changed = true }

--- What a session was granted for the tool of a call.
---@param call mcp-tools.Call
---@return { all: boolean?, paths: table<string, true>?, changed: boolean? }?
function Grants:of_session(call)
  local granted = self.sessions[party(call)]
  local grant = granted and granted[call.definition.name]
  if not grant then
    return nil
  end
  local definition = call.definition
  return grant.hash == source.key(definition) .. ' ' .. canonical_json.fingerprint(definition) and grant or CHANGED
end

--- How many sessions were granted a tool.
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

---@param item mcp-tools.Unanswered
---@param call mcp-tools.Call
---@return boolean
local function has_args(item, call)
  return call.snapshot ~= nil and canonical_json.same(item.args, call.snapshot)
end

---@param item mcp-tools.Unanswered
---@param call mcp-tools.Call
---@param targets mcp-tools.CallTarget[]
local function is_same(item, call, targets)
  local definition = call.definition
  return item.project == call.project
    and item.tool == definition.name
    and has_args(item, call)
    and item.hash == canonical_json.fingerprint(definition)
    and item.source == source.key(definition)
    and item.targets == text_of(targets)
end

--- Remembers a question that nobody answered.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@param choices mcp-tools.Choice[]
---@param files string[]?
function Grants:missed(call, decision, choices, files)
  if not call.snapshot then
    return -- what cannot be told from others cannot be granted
  end
  local definition, targets = call.definition, decision.targets
  for i, item in ipairs(self.unanswered) do
    if is_same(item, call, targets) then
      table.remove(self.unanswered, i)
      break
    end
  end
  table.insert(self.unanswered, {
    tool = definition.name,
    source = source.key(definition),
    hash = canonical_json.fingerprint(definition),
    args = call.snapshot,
    targets = text_of(targets),
    client = call.client,
    project = call.project,
    at = os.time(),
    definition = definition,
    choices = choices,
    files = files,
    key = rules.call_key(definition, call.args),
    remedy = denial.remedy(definition.name, decision),
  })
  if #self.unanswered > MAX_UNANSWERED then
    table.remove(self.unanswered, 1)
  end
end

--- Takes the person's yes to this very call, given after the question had ended.
---@param call mcp-tools.Call
---@param targets mcp-tools.CallTarget[]
---@return boolean granted
function Grants:redeem(call, targets)
  for i, item in ipairs(self.unanswered) do
    if item.granted and is_same(item, call, targets) then
      table.remove(self.unanswered, i)
      return true
    end
  end
  return false
end

--- The person has answered now: what was asked before with the same arguments is no longer open.
---@param call mcp-tools.Call
function Grants:forget_unanswered(call)
  self.unanswered = vim.tbl_filter(function(item)
    return item.project ~= call.project or item.tool ~= call.definition.name or not has_args(item, call)
  end, self.unanswered)
end

-- Denials ----------------------------------------------------------------------------------------------------------

--- The person denied a call.
---@param call mcp-tools.Call
---@return integer count denials in a row of that session
function Grants:denied(call)
  local who = party(call)
  local count = (self.denials[who] or 0) + 1
  if count == 1 and vim.tbl_count(self.denials) >= M.MAX_DENIED then
    self.denials = {} -- sessions come and go for as long as the editor lives
  end
  self.denials[who] = count
  return count
end

--- The person allowed a call: denials are counted anew.
---@param call mcp-tools.Call
function Grants:allowed(call)
  self.denials[party(call)] = nil
end

--- May it be offered not to be asked by this session again?
---@param call mcp-tools.Call
---@return boolean
function Grants:is_tiresome(call)
  return (self.denials[party(call)] or 0) >= M.PATIENCE
end

--- Questions of this session are denied from now on.
---@param call mcp-tools.Call
function Grants:silence(call)
  self.silenced[party(call)] = call.client.name or call.host
end

---@param call mcp-tools.Call
---@return boolean
function Grants:is_silenced(call)
  return self.silenced[party(call)] ~= nil
end

--- Every session may ask again.
function Grants:unsilence()
  self.silenced, self.denials = {}, {}
end

--- Forgets everything.
function Grants:reset()
  self.sessions, self.order, self.unanswered, self.denials, self.silenced = {}, {}, {}, {}, {}
end

return M
