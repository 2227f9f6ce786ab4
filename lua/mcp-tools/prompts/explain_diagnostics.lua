--- Prompt: explain diagnostics.

local diagnostics_text = require('mcp-tools.editor.diagnostics.prompt_text')

return {
  name = 'explain_diagnostics',
  title = 'Explain diagnostics',
  description = 'Explains the errors and warnings that the editor shows, with the code around them.',
  args = diagnostics_text.args(),
  run = function(ctx, args)
    local text, fault = diagnostics_text.text(ctx, args)
    if not text then
      return ctx:fail('not_found', fault)
    end
    ctx(
      'These are the diagnostics that my editor shows. Explain what each means in this code, what causes it, and which'
        .. ' of them have the same cause. Do not change anything yet.\n\n'
        .. text
    )
  end,
}
