--- `:McpTools deny`: denies the open question, or rejects the open review.

local approval = require('mcp-tools.ui.approval')
local notify = require('mcp-tools.notify')
local reviews = require('mcp-tools.editor.review')

local CHOICES = { [''] = 'deny', always = 'never', session = 'silence' }

---@type mcp-tools.Subcommand
return {
  usage = '[always | session | REASON]',
  description = 'deny the call that waits for approval, with a reason for the assistant; deny its tool always, or'
    .. ' all further questions of its session; without an open question reject what is left of a review',
  run = function(rest)
    local choice, reason = CHOICES[rest] or 'deny', not CHOICES[rest] and rest or nil
    if approval.count() == 0 and choice == 'deny' and reviews.count() > 0 then
      return require('mcp-tools.ui.review').none(reason) -- start-up cost
    end
    local ok, why = approval.answer_current(choice, reason)
    if not ok and why then
      notify.warn(why)
    end
  end,
  complete = function()
    return { 'always', 'session' }
  end,
}
