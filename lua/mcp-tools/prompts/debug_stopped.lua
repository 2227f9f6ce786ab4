--- Prompt: debug the stopped program.

local debugger = require('mcp-tools.editor.dap.describe')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'debug_stopped',
  title = 'Debug the stopped program',
  description = 'Explains where and why the program in the debugger (nvim-dap) has stopped, by its stack and its'
    .. ' variables.',
  args = { { name = 'question', description = 'What you want to know' } },
  run = function(ctx, args)
    local text, missing = debugger.describe(ctx)
    if not text then
      -- Not an error: a prompt that says what to do helps more than a client's red line.
      return ('I want to debug my program, but there is nothing to look at: %s\n\nHelp me to get there.'):format(
        missing
      )
    end
    local question = args.question
      or 'Say why it is in this state, which value is not what it should be, and what to look at next.'
    return (utf8.repair(('My program is stopped in the debugger. %s\n\n%s'):format(question, text)))
  end,
}
