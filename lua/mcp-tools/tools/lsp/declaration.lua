--- Finds the declaration of the symbol at a position.

local navigation = require('mcp-tools.editor.lsp.navigation')

return {
  name = 'lsp_declaration',
  title = 'Go to declaration',
  description = 'Where the name at a place is declared, by the language servers: {total, places: [{path, line, column,'
    .. ' text}]}; lines and columns from 1.',
  args = navigation.LOCATE_ARGS,
  annotations = { read_only = true, idempotent = true },
  run = navigation.locator('textDocument/declaration', 'declaration'),
}
