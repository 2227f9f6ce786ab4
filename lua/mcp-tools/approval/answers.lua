--- The possible answers to a request for approval, and the errors of denied calls.

local errors = require('mcp-tools.errors')
local review = require('mcp-tools.editor.review')
local rules = require('mcp-tools.approval.rules')

local M = {}

-- Answers -----------------------------------------------------------------------------------------------------------

---@type table<mcp-tools.Choice, true>
M.YES = { once = true, session = true, always = true, review = true }

--- Name of the shell command `mcp-tools` as a client; its session ends with the call.
local COMMAND = 'mcp-tools'

---@type table<mcp-tools.Choice, true>
local FROM_CLIENT = { once = true, session = true, deny = true }

--- Returns whether a client may give this answer. It may not have asked its user, so nothing may outlive its session.
---@param call mcp-tools.Call
---@param choice mcp-tools.Choice
---@return boolean
function M.is_from_client(call, choice)
  return FROM_CLIENT[choice] == true and (choice ~= 'session' or call.session ~= nil)
end

--- Returns the possible answers of the user.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@param can_silence boolean the session was denied so often that it can be silenced
---@return mcp-tools.Choice[]
function M.choices(call, decision, can_silence)
  local choices = { 'once', 'deny' }
  local definition = call.definition
  if review.can_replace_question(call) then
    table.insert(choices, 2, 'review')
  end
  local by_rule = vim.startswith(decision.by, 'approval.') and decision.by ~= 'approval.default'
  local shows_other = vim.iter(decision.targets):any(function(target)
    return target.other
  end)
  if not decision.fault then
    -- A rule of the user asks each time, so a longer permission would have no effect. A buffer without a file may have
    -- different content the next time.
    if not by_rule and not shows_other then
      if (call.session or call.client.name) and call.client.name ~= COMMAND then
        table.insert(choices, 'session')
      end
      local _, never = rules.call_key(definition, call.args)
      if not never then
        table.insert(choices, 'always')
      end
    end
    table.insert(choices, 'never')
  end
  if can_silence then
    table.insert(choices, 'silence')
  end
  return choices
end

-- Denied calls ------------------------------------------------------------------------------------------------------

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
  unanswered = 'Tell the user, and call it again when they can answer: only a new call asks them.',
  changed = 'Call it again, so that the user is asked again.',
  failed = 'Continue without it, and tell the user.',
}

--- Denials that follow a question to the user.
---@type table<mcp-tools.DenialNext, true>
local ASKED = { refused = true, unanswered = true, changed = true }

--- Returns the error for the client.
---@param call mcp-tools.Call
---@param why string contains nothing that a client must not see
---@param what mcp-tools.DenialNext
---@return mcp-tools.Error
function M.denial(call, why, what)
  local err = errors.new('access_denied', ('%s was not run: %s. %s'):format(call.name, why, NEXT[what]))
  err.asked = ASKED[what]
  return err
end

--- Returns why a call was denied, without what the error tells the model.
---@param message string of the error; its end may be missing
---@return string
function M.reason_in(message)
  local reason = message:gsub('^%S+ was not run: ', '')
  for _, sentence in pairs(NEXT) do
    local at = reason:find('. ' .. sentence:sub(1, 12), 1, true)
    reason = at and reason:sub(1, at - 1) or reason
  end
  return reason
end

--- Returns the error for a call that is denied without a question.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@return mcp-tools.Error
function M.denial_of(call, decision)
  if decision.by == 'files' then
    return M.denial(call, decision.reason, 'closed')
  elseif decision.by == 'ledger' then
    return M.denial(call, 'the user always denies it', 'decided')
  end
  return M.denial(call, "the user's configuration denies it", 'decided')
end

return M
