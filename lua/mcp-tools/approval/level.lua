--- The trust level of a tool, as it is shown to the user.

local rules = require('mcp-tools.approval.rules')
local source = require('mcp-tools.registry.source')

local M = {}

local NOTHING = {}

--- Returns whether a call of the tool calls its `needs_approval`: its source is trusted, or the user has verified it.
---@param definition mcp-tools.Definition
---@param root string
---@param verdict mcp-tools.Verdict
---@return boolean
local function needs_approval_applies(definition, root, verdict)
  return verdict.level == 'verified' or source.is_believed(definition, root)
end

--- Returns the level of a tool, without arguments.
---@param root string
---@param definition mcp-tools.Definition
---@param verdict mcp-tools.Verdict?
---@param fault string? why there is no verdict
---@return 'trusted'|'verified'|'untrusted'|'denied' level
---@return string why
function M.of(root, definition, verdict, fault)
  ---@type any a call without a client
  local call = { definition = definition, args = vim.empty_dict(), client = {}, host = 'nvim', project = root }
  local option = rules.by_options(definition, root)
  if option and option.action == 'deny' then
    return 'denied', option.reason
  elseif verdict and verdict.level == 'denied' then
    return 'denied', 'you always deny it'
  elseif not verdict or fault then
    return 'untrusted', 'your earlier decisions cannot be read'
  elseif verdict.level == 'trusted' and not option then
    return 'trusted', 'you trust it'
  elseif
    not option
    and type(definition.needs_approval) == 'function'
    and needs_approval_applies(definition, root, verdict)
  then
    return 'untrusted', 'it depends on its arguments'
  end
  local known = { level = verdict.level, changed = verdict.changed } -- allowed files and calls are not for the tool
  local decision = option or rules.by_memory(call, known, NOTHING, nil, {}) or rules.by_definition(call, root)
  return decision.action == 'allow' and 'verified' or 'untrusted', decision.reason
end

return M
