--- The last calls in this editor, and the durations of the last calls of each tool.

local lru = require('mcp-tools.util.lru')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum number of calls, of durations for each tool, and of names of tools and clients.
local CALLS, TIMES, NAMES = 50, 16, 500
--- Maximum bytes of a name, which a client may choose.
local MAX_NAME = 200

---@param name any
---@return string
local function name_of(name)
  return utf8.cut(tostring(name), MAX_NAME)
end

---@class mcp-tools.PastCall
---@field id string
---@field name string
---@field client string
---@field state 'done'|'failed'|'timed_out'|'cancelled'
---@field code? mcp-tools.ErrorCode if it is not done
---@field ms number from arrival to end
---@field ended_at integer ns

---@class mcp-tools.History
---@field note fun(call: mcp-tools.Call)
---@field list fun(count: integer): mcp-tools.PastCall[] newest first
---@field times fun(name: string): number[] ms, oldest first
---@field last_of fun(client: string): integer? ns, when the client's last call arrived or ended

--- Creates an empty history.
---@return mcp-tools.History
function M.new()
  local calls = {} ---@type mcp-tools.PastCall[] newest first
  local times, seen = lru(NAMES), lru(NAMES) -- clients may send any number of names
  local self = {}

  function self.note(call)
    local client = name_of(call.client.name or call.host)
    seen:set(client, call.ended_at or call.created_at)
    -- Calls on an agent's own channel, such as `closeAllDiffTabs`, would displace all others.
    if not call.ended_at or call.definition and call.definition.agent then
      return
    end
    local ms = (call.ended_at - call.created_at) / 1e6
    table.insert(calls, 1, {
      id = call.id,
      name = call.name,
      client = client,
      state = call.outcome.state,
      code = call.outcome.error and call.outcome.error.code,
      ms = ms,
      ended_at = call.ended_at,
    })
    calls[CALLS + 1] = nil
    local durations = times:get(call.name) or {}
    times:set(call.name, durations)
    durations[#durations + 1] = ms
    if #durations > TIMES then
      table.remove(durations, 1)
    end
  end

  function self.list(count)
    return vim.list_slice(calls, 1, count)
  end

  function self.times(name)
    return times:get(name) or {}
  end

  function self.last_of(client)
    return seen:get(name_of(client))
  end

  return self
end

return M
