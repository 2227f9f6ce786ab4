-- Sessions of companions without a bridge: tools are called on the way of every host, and what is pushed is kept.

local core = require('mcp-tools.core')
local companion_sessions = require('mcp-tools.editor.agents')
local definition = require('mcp-tools.registry.definition.tool')
local registered = require('mcp-tools.scope.agent_tools')
local review = require('mcp-tools.editor.review')
local scope = require('mcp-tools.scope')
local t = require('helpers')

local M = {}

local count = 0

--- A session whose stream stands.
---@param name string
---@param client? string
---@return mcp-tools.companion.Session session `pushed` has its notifications: { method, params }
function M.open(name, client)
  local companion = require('mcp-tools.agents.known.' .. name)
  registered.set(
    name,
    vim.tbl_map(function(tool)
      local made = assert(definition.normalise(tool))
      made.companion = name
      if made.needs_approval == nil and made.annotations and made.annotations.read_only then
        made.needs_approval = false
      end
      made.source = { origin = 'bundled', name = name, group = 'companions', file = name }
      return made
    end, companion.tools)
  )
  count = count + 1
  local session = {
    key = 's' .. count,
    companion = name,
    client = client or name,
    version = '1',
    asked = {},
    data = {},
    pushed = {},
    push = function(self, method, params)
      table.insert(self.pushed, { method, vim.json.decode(vim.json.encode(params)) })
      return companion_sessions.session(self.key) == self
    end,
  }
  companion_sessions.add(session)
  if companion.opened then
    companion.opened(session)
  end
  return session
end

--- The agent is gone.
function M.close(session)
  local companion = require('mcp-tools.agents.known.' .. session.companion)
  companion_sessions.remove(session.key)
  if companion.left then
    companion.left(session)
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
    view = scope.view({ companion = session.companion }),
  })
end

--- Its result as the agent gets it.
---@param call mcp-tools.Call
---@return table? result
---@return mcp-tools.Error? err
function M.result(call)
  t.wait(function()
    return call:ended()
  end, 5000, call.name)
  local payload = call.outcome.payload
  return payload and vim.json.decode(payload.text), call.outcome.error
end

--- Calls a tool.
function M.call(session, name, args)
  return M.result(M.begin(session, name, args))
end

--- The text of its result, or of its first part; of JSON the value.
function M.value(session, name, args)
  local result, err = M.call(session, name, args)
  t.eq(nil, err)
  local text = result.content[1].text
  local ok, value = pcall(vim.json.decode, text)
  return ok and value or text
end

--- The review that a session has opened.
---@return mcp-tools.Review
function M.review(session, key)
  return t.wait(function()
    return vim.iter(review.list()):find(function(one)
      return one.client.session == session.key and (not key or one.key == key)
    end)
  end, 5000, 'a review')
end

return M
