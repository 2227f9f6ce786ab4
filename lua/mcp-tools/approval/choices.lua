--- The possible answers to a request for approval, and which of them a client may give.

local review = require('mcp-tools.editor.review')
local rules = require('mcp-tools.approval.rules')

local M = {}

---@type table<mcp-tools.Choice, true>
M.YES = { once = true, session = true, always = true, review = true }

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
function M.of(call, decision, can_silence)
  local choices = { 'once', 'deny' }
  local definition = call.definition
  if definition.reviewed and definition.source and definition.source.origin == 'bundled' and review.is_attended() then
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
      if call.session or call.client.name then
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

return M
