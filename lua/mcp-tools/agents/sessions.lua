--- Sessions of agents: their events, and the context that each of them receives.

local editor_agents = require('mcp-tools.editor.agents')
local current = require('mcp-tools.bridge.current')
local editor_context = require('mcp-tools.editor.context')
local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')

local M = {}

--- Delays after which a new session receives the context again, in ms. Claude Code drops notifications until its screen
--- is ready, about 50 ms after it starts to listen.
local REPEAT_DELAYS = { 200, 1000, 5000 }

--- The enabled agents by name; agents/init.lua sets it.
---@type table<string, mcp-tools.agents.Loaded>
M.enabled = {}

---@class mcp-tools.agents.LiveSession: mcp-tools.agents.Session
---@field open boolean whether its stream is open
---@field sent_context table? the context sent last
local Session = {}
Session.__index = Session

--- Sends a notification; see mcp-tools.agents.Session.
---@param method string
---@param params table?
---@param latest boolean?
---@return boolean sent
function Session:push(method, params, latest)
  if editor_agents.session(self.key) ~= self then
    return false
  end
  local text, err = json.encode(params or vim.empty_dict(), 'params')
  if not text then
    log.error("agent '%s': %s was not sent: %s", self.agent, method, err.message)
    return false
  end
  return current.send('push', self.agent, self.key, method, text, latest == true)
end

--- Calls a function of the session's agent definition.
---@param session mcp-tools.agents.Session
---@param field 'context'|'opened'|'notified'|'left'|'mention'
---@param ... any
---@return any value
---@return any more
local function call(session, field, ...)
  local loaded = M.enabled[session.agent]
  local fn = loaded and loaded.agent[field]
  if not fn then
    return nil
  end
  local ok, value, more = log.guard(('%s() of the agent %s'):format(field, session.agent), fn, ...)
  return ok and value or nil, ok and more or nil
end

---@param data { agent: string, session: string, client: string?, version: string? }
---@return mcp-tools.agents.LiveSession
local function session_of(data)
  local session = editor_agents.session(data.session) --[[@as mcp-tools.agents.LiveSession?]]
  if not session then
    session = setmetatable({
      key = data.session,
      agent = data.agent,
      client = '',
      version = '',
      asked = {},
      data = {},
      open = false,
    }, Session)
    editor_agents.add(session)
  end
  session.client, session.version = data.client or session.client, data.version or session.version
  return session
end

---@param session mcp-tools.agents.LiveSession
---@param now table
local function push_context(session, now)
  if vim.deep_equal(session.sent_context, now) then
    return
  end
  session.sent_context = now
  for _, push in ipairs(call(session, 'context', now, session) or {}) do
    session:push(push.method, push.params, true)
  end
end

--- Returns whether any session needs context changes.
---@return boolean
function M.any()
  return #editor_agents.sessions() > 0
end

--- Sends the changed context to every open session.
---@param now table
function M.send_context(now)
  for _, session in ipairs(editor_agents.sessions()) do ---@cast session mcp-tools.agents.LiveSession
    if session.open then
      push_context(session, now)
    end
  end
end

---@param session mcp-tools.agents.LiveSession
---@param is_bridge_gone? boolean
local function leave(session, is_bridge_gone)
  editor_agents.remove(session.key)
  call(session, 'left', session, is_bridge_gone == true)
end

--- Sends the context to a new session, now and after each delay.
---@param session mcp-tools.agents.LiveSession
local function send_first_context(session)
  local function push()
    local now = editor_agents.session(session.key) == session and editor_context.get()
    if now then
      session.sent_context = nil
      push_context(session, now)
    end
  end
  push()
  for _, ms in ipairs(REPEAT_DELAYS) do
    vim.defer_fn(push, ms)
  end
end

---@type table<string, fun(data: table)>
local events = {
  opened = function(data)
    local session = session_of(data)
    session.open = true
    call(session, 'opened', session)
    send_first_context(session)
  end,
  notified = function(data)
    local session = session_of(data)
    local ok, params = pcall(vim.json.decode, data.params or '{}')
    call(session, 'notified', session, data.method, ok and type(params) == 'table' and params or {})
  end,
  left = function(data)
    local session = editor_agents.session(data.session) --[[@as mcp-tools.agents.LiveSession?]]
    if session then
      leave(session)
    end
  end,
}

--- Handles an event of a session.
---@param event string
---@param data table
function M.handle(event, data)
  if events[event] and M.enabled[data.agent] then
    events[event](data)
  end
end

--- Removes all sessions after the end of the bridge, or only those of agents that are being disabled.
---@param stays? fun(name: string): boolean whether the sessions of this agent stay
function M.drop(stays)
  for _, session in ipairs(editor_agents.sessions()) do
    if not (stays and stays(session.agent)) then
      leave(session --[[@as mcp-tools.agents.LiveSession]], stays == nil)
    end
  end
end

--- Records a call. A session may call a tool before its stream opens.
---@param name string the agent
---@param ctx mcp-tools.Ctx
---@param tool string
function M.record_call(name, ctx, tool)
  if ctx.session then
    local client = ctx.client or {}
    local session = editor_agents.session(ctx.session)
      or session_of({ agent = name, session = ctx.session, client = client.name, version = client.version })
    session.asked[tool] = (session.asked[tool] or 0) + 1
  end
end

--- Sends a file, or lines of it, to a session.
---@param session mcp-tools.agents.Session
---@param place table
---@return boolean sent
---@return string? why_not
function M.mention(session, place)
  local push, why_not = call(session, 'mention', session, place)
  return push ~= nil and session:push(push.method, push.params), why_not
end

return M
