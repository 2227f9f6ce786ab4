--- `:McpTools deny`: refuses a tool that is asked for.

local approval = require('mcp-tools.ui.approval')
local notify = require('mcp-tools.notify')

local CHOICES = { [''] = 'deny', always = 'never', session = 'silence' }

---@type mcp-tools.Subcommand
return {
  usage = '[always | session]',
  description = 'deny the tool that is asked for; from now on; all that its session asks for',
  run = function(rest)
    local choice = CHOICES[rest]
    if not choice then
      return notify.error(('deny %s? :McpTools deny [always | session]'):format(rest))
    end
    local ok, why = approval.answer_current(choice)
    if not ok and why then
      notify.warn(why)
    end
  end,
  complete = function()
    return { 'always', 'session' }
  end,
}
