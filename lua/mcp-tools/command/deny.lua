--- `:McpTools deny`: denies the open question.

local approval = require('mcp-tools.ui.approval')
local notify = require('mcp-tools.notify')

local CHOICES = { [''] = 'deny', always = 'never', session = 'silence' }

---@type mcp-tools.Subcommand
return {
  usage = '[always | session | REASON]',
  description = 'deny the call that waits for approval, with a reason for the assistant; deny its tool always, or'
    .. ' all further questions of its session',
  run = function(rest)
    local ok, why = approval.answer_current(CHOICES[rest] or 'deny', not CHOICES[rest] and rest or nil)
    if not ok and why then
      notify.warn(why)
    end
  end,
  complete = function()
    return { 'always', 'session' }
  end,
}
