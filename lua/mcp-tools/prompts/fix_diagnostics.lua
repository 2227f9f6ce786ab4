--- Prompt: fix diagnostics.

local findings = require('mcp-tools.editor.diagnostics.findings')

return findings.prompt(
  {
    name = 'fix_diagnostics',
    title = 'Fix diagnostics',
    description = 'Fixes the errors and warnings that the editor shows, with the code around them.',
  },
  'Fix these diagnostics of my editor. Begin with those that cause others, change no more than is needed, and do'
    .. ' not silence a warning instead of fixing its cause. Files may have unsaved changes: read them'
    .. ' through the editor. Finally, read nvim://diagnostics to check that they are fixed.'
)
