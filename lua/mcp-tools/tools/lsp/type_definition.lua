--- Finds the definition of the type of the symbol at a position.

local navigation = require('mcp-tools.editor.lsp.navigation')

return {
  name = 'lsp_type_definition',
  title = 'Go to type definition',
  description = 'Where the type of what stands at a place is defined: {total, places: [{path, line, column, text}]};'
    .. ' lines and columns from 1.',
  args = navigation.LOCATE_ARGS,
  annotations = { read_only = true, idempotent = true },
  run = navigation.locator('textDocument/typeDefinition', 'type definition'),
}
