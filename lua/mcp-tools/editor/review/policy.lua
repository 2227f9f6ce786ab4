--- When the edits of a call are reviewed.

local config = require('mcp-tools.config')
local review = require('mcp-tools.editor.review')
local source = require('mcp-tools.registry.source')

local M = {}

---@alias mcp-tools.ReviewWhen 'ask'|'after'|'never'

--- Decisions that were made for what is reviewed (approval/gateway.lua); the latter by the person, who waits for it.
local REVIEWED = { review = true, ['person: review'] = true }

local STRICTNESS = { never = 1, after = 2, ask = 3 }

--- What the options say, or what the person has said of this call. Of a client, which names itself, only what is
--- stricter counts.
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

--- Has the person asked for the review of this call?
---@param call mcp-tools.Call
---@return boolean
function M.is_asked_for(call)
  return call.decision ~= nil and call.decision.by == 'person: review'
end

--- Is there somebody at the editor who could review?
---@return boolean
function M.is_attended()
  return review.is_attended()
end

--- Does the review take the place of the question for approval? All that the tool changes has to go through it.
---@param call mcp-tools.Call
---@return boolean
function M.replaces_question(call)
  local definition = call.definition
  local bundled = definition.source and definition.source.origin == 'bundled'
  return bundled and definition.reviewed == true and M.is_attended() and M.of(call) == 'ask'
end

return M
