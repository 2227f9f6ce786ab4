-- Sessions of agents without a bridge: tools are called on the way of every host, and what is pushed is kept.

local core = require('mcp-tools.core')
local agent_sessions = require('mcp-tools.editor.agents')
local definitions = require('mcp-tools.agents.definitions')
local scope = require('mcp-tools.scope')
local review = require('mcp-tools.editor.review')
local t = require('helpers')

local M = {}

local count = 0

--- A session whose stream stands.
---@param name string
---@param client? string
---@return mcp-tools.agents.Session session `pushed` has its notifications: { method, params }
function M.open(name, client)
  local agent = require('mcp-tools.agents.known.' .. name)
  scope.set_agent_tools(name, assert(definitions.named(name)).definitions)
  count = count + 1
  local session = {
    key = 's' .. count,
    agent = name,
    client = client or name,
    version = '1',
    asked = {},
    data = {},
    pushed = {},
    push = function(self, method, params)
      table.insert(self.pushed, { method, vim.json.decode(vim.json.encode(params)) })
      return agent_sessions.session(self.key) == self
    end,
  }
  agent_sessions.add(session)
  if agent.opened then
    agent.opened(session)
  end
  return session
end

--- The agent is gone.
function M.close(session)
  local agent = require('mcp-tools.agents.known.' .. session.agent)
  agent_sessions.remove(session.key)
  if agent.left then
    agent.left(session)
  end
end

--- Begins a call.
---@return mcp-tools.Call
function M.begin(session, name, args)
  return core.get().executor:execute(name, args or vim.empty_dict(), {
    kind = 'tool',
    host = 'mcp',
    session = session.key,
    client = { name = session.client },
    view = scope.view({ agent = session.agent }),
  })
end

--- Its result as the agent gets it.
---@param call mcp-tools.Call
---@return table? result
---@return mcp-tools.Error? err
function M.result(call)
  t.ended(call, 5000, call.name)
  local payload = call.outcome.payload
  return payload and vim.json.decode(payload.text), call.outcome.error
end

--- Calls a tool.
function M.call(session, name, args) return M.result(M.begin(session, name, args)) end

--- The text of its result, or of its first part; of JSON the value.
function M.value(session, name, args)
  local result = t.ok(M.call(session, name, args))
  local text = result.content[1].text
  local ok, value = pcall(vim.json.decode, text)
  return ok and value or text
end

--- The review that a session has opened.
---@return mcp-tools.Review
function M.review(session, key)
  return t.wait(function()
    return vim
      .iter(review.list())
      :find(function(one) return one.client.session == session.key and (not key or one.key == key) end)
  end, 5000, 'a review')
end

return M
