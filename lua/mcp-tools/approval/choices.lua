--- Choices: what may be answered to a question for approval, and by whom.

local policy = require('mcp-tools.editor.review.policy')
local rules = require('mcp-tools.approval.rules')

local M = {}

---@type table<mcp-tools.Choice, true>
M.YES = { once = true, session = true, always = true, review = true }

---@type table<mcp-tools.Choice, true>
local FROM_CLIENT = { once = true, session = true, deny = true }

--- May a client give this answer? It may have asked nobody, so it can grant nothing that outlives its session.
---@param call mcp-tools.Call
---@param choice mcp-tools.Choice
---@return boolean
function M.is_from_client(call, choice)
  return FROM_CLIENT[choice] == true and (choice ~= 'session' or call.session ~= nil)
end

--- What a person may answer.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@param is_tiresome boolean this session was denied so often that it may be silenced
---@return mcp-tools.Choice[]
function M.of(call, decision, is_tiresome)
  local choices = { 'once', 'deny' }
  local definition = call.definition
  if definition.reviewed and definition.source and definition.source.origin == 'bundled' and policy.is_attended() then
    table.insert(choices, 2, 'review')
  end
  local by_rule = vim.startswith(decision.by, 'approval.') and decision.by ~= 'approval.default'
  local shows_other = vim.iter(decision.targets):any(function(target)
    return target.other
  end)
  if not decision.fault then
    -- Their own rule says to ask each time, and comes first: a yes for longer would be without effect. What is no file
    -- may be something else the next time.
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
  if is_tiresome then
    table.insert(choices, 'silence')
  end
  return choices
end

return M
