--- Resource: diagnostics of all files of the project.

local findings = require('mcp-tools.editor.diagnostics.findings')
local watch = require('mcp-tools.editor.watch')

return {
  name = 'diagnostics',
  uri = 'nvim://diagnostics',
  title = 'Diagnostics',
  description = 'Errors, warnings and hints that language servers and linters show in the editor, the most severe'
    .. ' of each file first. Lines and columns count from 1.',
  mime_type = 'application/json',
  tags = { 'editor', 'diagnostics' },
  run = function(ctx)
    return findings.view(ctx)
  end,
  watch = function(changed)
    return watch.events('DiagnosticChanged', changed)
  end,
}
