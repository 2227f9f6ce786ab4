--- Decides when a call's edits are reviewed.

local config = require('mcp-tools.config')
local review = require('mcp-tools.editor.review')
local source = require('mcp-tools.registry.source')

local M = {}

---@alias mcp-tools.ReviewWhen 'ask'|'after'|'never'

--- Approval decisions that require a review (approval/gateway.lua); the second one was made by the user.
local REVIEWED = { review = true, ['user: review'] = true }

local STRICTNESS = { never = 1, after = 2, ask = 3 }

--- Returns the user's decision for this call, otherwise the options. A client's own option only applies if it is
--- stricter, since clients choose their names.
---@param call mcp-tools.Call?
---@return mcp-tools.ReviewWhen?
function M.of(call)
  local definition = call and call.definition
  if not call or not definition then
    return nil
  elseif call.decision and REVIEWED[call.decision.by] then
    return 'ask'
  end
  local options = config.get()
  local group = options.review.groups[source.group(definition)]
  local when = options.review.tools[definition.name] or group or options.review.when
  local client = call.client and call.client.name and options.clients[call.client.name]
  local own = client and client.review
  if own and STRICTNESS[own] > (STRICTNESS[when] or 0) then
    return own
  end
  return when
end

--- Returns whether the user has asked to review this call.
---@param call mcp-tools.Call
---@return boolean
function M.is_asked_for(call)
  return call.decision ~= nil and call.decision.by == 'user: review'
end

--- Returns whether a user is present who can review.
---@return boolean
function M.is_attended()
  return review.is_attended()
end

--- Returns whether the review replaces the approval question: all changes of the tool must go through the review.
---@param call mcp-tools.Call
---@return boolean
function M.replaces_question(call)
  local definition = call.definition
  local bundled = definition.source and definition.source.origin == 'bundled'
  return bundled and definition.reviewed == true and M.is_attended() and M.of(call) == 'ask'
end

return M
