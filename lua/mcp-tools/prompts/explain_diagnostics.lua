--- Prompt: explain diagnostics.

local findings = require('mcp-tools.editor.diagnostics.findings')

return {
  name = 'explain_diagnostics',
  title = 'Explain diagnostics',
  description = 'Explains the errors and warnings that the editor shows, with the code around them.',
  args = findings.prompt_args(),
  run = function(ctx, args)
    local text, fault = findings.prompt_text(ctx, args)
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
