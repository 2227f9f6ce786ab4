--- Trust level: how far a tool is trusted, in a word for people.

local rules = require('mcp-tools.approval.rules')
local source = require('mcp-tools.registry.source')

local M = {}

local NOTHING = {}

--- Is its `needs_approval` called when it is used? A stranger's is once the person has verified the tool.
---@param definition mcp-tools.Definition
---@param root string
---@param verdict mcp-tools.Verdict
---@return boolean
local function heard(definition, root, verdict)
  return verdict.level == 'verified' or source.is_believed(definition, root)
end

--- The level of a tool whose arguments are not known yet.
---@param root string
---@param definition mcp-tools.Definition
---@param verdict mcp-tools.Verdict?
---@param fault string? why there is no verdict
---@return 'trusted'|'verified'|'untrusted'|'denied' level
---@return string why
function M.of(root, definition, verdict, fault)
  local call = { definition = definition, args = vim.empty_dict(), client = {}, host = 'nvim', project = root }
  local option = rules.by_options(definition, root)
  if option and option.action == 'deny' then
    return 'denied', option.reason
  elseif verdict and verdict.level == 'denied' then
    return 'denied', 'you denied it always'
  elseif not verdict or fault then
    return 'untrusted', 'what you decided before cannot be known'
  elseif verdict.level == 'trusted' and not option then
    return 'trusted', 'you trust it'
  elseif not option and type(definition.needs_approval) == 'function' and heard(definition, root, verdict) then
    return 'untrusted', 'it depends on its arguments'
  end
  local known = { level = verdict.level, changed = verdict.changed } -- a call that is always allowed is not the tool
  local decision = option or rules.by_memory(call, known, NOTHING, nil, {}) or rules.by_definition(call, root)
  return decision.action == 'allow' and 'verified' or 'untrusted', decision.reason
end

return M
