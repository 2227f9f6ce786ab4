--- Lists the references to the symbol at a position.

local args = require('mcp-tools.editor.lsp.args')
local navigation = require('mcp-tools.editor.lsp.navigation')

return {
  name = 'lsp_references',
  title = 'Find references',
  description = 'Every use of the name at a place, in the whole project: {total, files: [{path, lines: ["line:'
    .. ' text"]}]}.'
    .. ' Waits until the language server has read the project. Too many come as numbers of lines, then as counts.',
  args = args.paged(args.place({
    include_declaration = { type = 'boolean', description = 'Also where it is declared', default = true },
    files = { type = 'string', description = 'Only files that match this glob, such as src/**/*.py' },
  })),
  annotations = { read_only = true, idempotent = true },
  run = navigation.references,
}
