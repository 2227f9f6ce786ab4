--- Denied calls: the error for the client, and the line of configuration with which the user can allow the tool.

local errors = require('mcp-tools.errors')

local M = {}

---@alias mcp-tools.DenialNext
---| 'closed'     # always denied, without a question
---| 'decided'    # denied by an earlier decision or a rule of the user
---| 'refused'    # the user or the client said no
---| 'unanswered' # the question was not answered
---| 'changed'    # the call is not what was approved
---| 'failed'     # the decision failed with an error

---@type table<mcp-tools.DenialNext, string>
local NEXT = {
  closed = 'No tool can access it. Continue without it.',
  decided = 'Continue without it.',
  refused = 'Do not try it again unless the user tells you to.',
  unanswered = 'The user can still allow the next try with the same arguments: tell them, then call it again.',
  changed = 'Call it again, so that the user is asked again.',
  failed = 'Continue without it, and tell the user.',
}

--- Those after a question to the user.
---@type table<mcp-tools.DenialNext, true>
local ASKED = { refused = true, unanswered = true, changed = true }

--- Returns the error for the client.
---@param call mcp-tools.Call
---@param why string contains nothing that a client must not see
---@param what mcp-tools.DenialNext
---@return mcp-tools.Error
function M.error(call, why, what)
  local err = errors.new('access_denied', ('%s was not run: %s. %s'):format(call.name, why, NEXT[what]))
  err.asked = ASKED[what]
  return err
end

--- Returns the error for a call that is denied without a question.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@return mcp-tools.Error
function M.decided(call, decision)
  if decision.by == 'files' then
    return M.error(call, decision.reason, 'closed')
  elseif decision.by == 'ledger' then
    return M.error(call, 'the user always denies it', 'decided')
  end
  return M.error(call, "the user's configuration denies it", 'decided')
end

--- Quotes a tool name as a Lua table key.
---@param name string
---@return string
local function key_of(name)
  if name:find('^[%a_][%w_]*$') and loadstring('local ' .. name) then
    return name
  end
  local escaped = name:gsub('[^%w_%-./ ]', function(char)
    return ('\\%03d'):format(char:byte())
  end)
  return ('["%s"]'):format(escaped)
end

--- Returns the line of configuration that allows a tool; nil if none would.
---@param name string of the tool
---@param decision mcp-tools.Decision the decision to ask
---@return string?
function M.remedy(name, decision)
  -- `approval.rule` comes before the option, and an unreadable ledger may contain a "never".
  if decision.action ~= 'ask' or decision.fault or decision.by == 'approval.rule' then
    return nil
  end
  return ('require("mcp-tools").setup({ approval = { tools = { %s = "allow" } } })'):format(key_of(name))
end

return M
