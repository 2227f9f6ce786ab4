--- Finds the implementations of the symbol at a position.

local navigation = require('mcp-tools.editor.lsp.navigation')

return {
  name = 'lsp_implementation',
  title = 'Go to implementation',
  description = 'Where the interface or method at a place is implemented: {total, places: [{path, line, column,'
    .. ' text}]}; lines and columns from 1.',
  args = navigation.LOCATE_ARGS,
  annotations = { read_only = true, idempotent = true },
  run = navigation.locator('textDocument/implementation', 'implementation'),
}
