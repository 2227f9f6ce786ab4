--- Sessions of companions: who has come to which endpoint, and what each of them is told.

local companion_sessions = require('mcp-tools.editor.agents')
local current = require('mcp-tools.bridge.current')
local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')

local M = {}

--- When the context is told again to who has just come, in ms: Claude Code listens before its screen does (some
--- 50 ms on a quiet machine), and drops what it hears until then.
local AGAIN = { 200, 1000, 5000 }

---@type fun(name: string): mcp-tools.Companion? those that are on
local find = function() end

---@type fun(): table? what the person sees now
local context = function() end

---@param opts { find: (fun(name: string): mcp-tools.Companion?), context: fun(): table? }
function M.use(opts)
  find, context = opts.find, opts.context
end

---@class mcp-tools.companion.LiveSession: mcp-tools.companion.Session
---@field open boolean its stream stands
---@field told table? the context that it was told last
local Session = {}
Session.__index = Session

--- Sends a notification; see mcp-tools.companion.Session.
---@param method string
---@param params table?
---@param latest boolean?
---@return boolean sent
function Session:push(method, params, latest)
  local channel = current.said.channel
  if not channel or companion_sessions.session(self.key) ~= self then
    return false
  end
  local text, err = json.encode(params or vim.empty_dict(), 'params')
  if not text then
    log.error('companion %s: %s is not sent: %s', self.companion, method, err.message)
    return false
  end
  return (pcall(vim.rpcnotify, channel, 'push', self.companion, self.key, method, text, latest == true))
end

--- Calls a function of a companion.
---@param session mcp-tools.companion.Session
---@param field 'context'|'opened'|'notified'|'left'|'mention'
---@param ... any
---@return any value
---@return any more
local function tell(session, field, ...)
  local companion = find(session.companion)
  local fn = companion and companion[field]
  if not fn then
    return nil
  end
  local ok, value, more = log.guard(('%s() of the companion %s'):format(field, session.companion), fn, ...)
  return ok and value or nil, ok and more or nil
end

---@param data { companion: string, session: string, client: string?, version: string? }
---@return mcp-tools.companion.LiveSession
local function session_of(data)
  local session = companion_sessions.session(data.session) --[[@as mcp-tools.companion.LiveSession?]]
  if not session then
    session = setmetatable({
      key = data.session,
      companion = data.companion,
      client = '',
      version = '',
      asked = {},
      data = {},
      open = false,
    }, Session)
    companion_sessions.add(session)
  end
  session.client, session.version = data.client or session.client, data.version or session.version
  return session
end

---@param session mcp-tools.companion.LiveSession
---@param now table
local function push_context(session, now)
  if vim.deep_equal(session.told, now) then
    return
  end
  session.told = now
  for _, push in ipairs(tell(session, 'context', now, session) or {}) do
    session:push(push.method, push.params, true)
  end
end

--- Is there anybody to whom a change of the context is told?
---@return boolean
function M.any()
  return #companion_sessions.sessions() > 0
end

--- The context has changed: every session is told.
---@param now table
function M.tell_context(now)
  for _, session in ipairs(companion_sessions.sessions()) do
    if session.open then
      push_context(session, now)
    end
  end
end

---@param session mcp-tools.companion.LiveSession
---@param is_bridge_gone? boolean
local function leave(session, is_bridge_gone)
  companion_sessions.remove(session.key)
  tell(session, 'left', session, is_bridge_gone == true)
end

--- Who has just come is told the context, and a little later again.
---@param session mcp-tools.companion.LiveSession
local function welcome(session)
  local function push()
    local now = companion_sessions.session(session.key) == session and context()
    if now then
      session.told = nil
      push_context(session, now)
    end
  end
  push()
  for _, ms in ipairs(AGAIN) do
    vim.defer_fn(push, ms)
  end
end

---@type table<string, fun(data: table)>
local events = {
  opened = function(data)
    local session = session_of(data)
    session.open = true
    tell(session, 'opened', session)
    welcome(session)
  end,
  notified = function(data)
    local session = session_of(data)
    local ok, params = pcall(vim.json.decode, data.params or '{}')
    tell(session, 'notified', session, data.method, ok and type(params) == 'table' and params or {})
  end,
  left = function(data)
    local session = companion_sessions.session(data.session) --[[@as mcp-tools.companion.LiveSession?]]
    if session then
      leave(session)
    end
  end,
}

--- The bridge tells of a session.
---@param event string
---@param data table
function M.heard(event, data)
  if events[event] and find(data.companion) then
    events[event](data)
  end
end

--- The bridge is gone, and all sessions with it; or those of companions that are about to be off.
---@param stays? fun(companion: string): boolean
function M.drop(stays)
  for _, session in ipairs(companion_sessions.sessions()) do
    if not (stays and stays(session.companion)) then
      leave(session --[[@as mcp-tools.companion.LiveSession]], stays == nil)
    end
  end
end

--- A session calls a tool. That may be the first that is heard of it: some call before their stream stands.
---@param companion string
---@param ctx mcp-tools.Ctx
---@param tool string
function M.note_call(companion, ctx, tool)
  if ctx.session then
    local client = ctx.client or {}
    local session = companion_sessions.session(ctx.session)
      or session_of({ companion = companion, session = ctx.session, client = client.name, version = client.version })
    session.asked[tool] = (session.asked[tool] or 0) + 1
  end
end

--- Mentions a place to a session.
---@param session mcp-tools.companion.Session
---@param place table
---@return boolean sent
---@return string? why_not
function M.mention(session, place)
  local push, why_not = tell(session, 'mention', session, place)
  return push ~= nil and session:push(push.method, push.params), why_not
end

return M
