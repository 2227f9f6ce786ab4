--- Finds the definition of the symbol at a position.

local navigation = require('mcp-tools.editor.lsp.navigation')

return {
  name = 'lsp_definition',
  title = 'Go to definition',
  description = 'Finds where the symbol at a position is defined, with the language servers. Returns {total, places:'
    .. ' [{path, line, column, text}]}, from 1.',
  args = navigation.LOCATE_ARGS,
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = navigation.locator('textDocument/definition', 'definition'),
}
