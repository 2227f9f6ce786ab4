--- Diagnostics of all files of the project.

local diagnostics = require('mcp-tools.editor.diagnostics')
local watch = require('mcp-tools.editor.watch')

return {
  name = 'diagnostics',
  uri = 'nvim://diagnostics',
  title = 'Diagnostics',
  description = 'Errors, warnings and hints that language servers and linters show in the editor, the worst of each'
    .. ' file first. Lines and columns count from 1.',
  mime_type = 'application/json',
  tags = { 'editor', 'diagnostics' },
  run = function(ctx)
    return diagnostics.view(ctx)
  end,
  watch = function(changed)
    return watch.events('DiagnosticChanged', changed)
  end,
}
