--- Prompt: explain diagnostics.

local findings = require('mcp-tools.editor.diagnostics.findings')

return findings.prompt(
  {
    name = 'explain_diagnostics',
    title = 'Explain diagnostics',
    description = 'Explains the errors and warnings that the editor shows, with the code around them.',
  },
  'These are the diagnostics that my editor shows. Explain what each means in this code, what causes it, and which'
    .. ' of them have the same cause. Do not change anything yet.'
)
