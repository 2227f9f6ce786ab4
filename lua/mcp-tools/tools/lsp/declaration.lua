--- Finds the declaration of the symbol at a position.

local args = require('mcp-tools.editor.lsp.args')
local navigation = require('mcp-tools.editor.lsp.navigation')

return {
  name = 'lsp_declaration',
  title = 'Go to declaration',
  description = 'Where the name at a place is declared, by the language servers: {total, places: [{path, line, column,'
    .. ' text}]}; lines and columns from 1.',
  args = args.place({
    limit = { type = 'integer', description = 'Maximum number of places', default = 50, minimum = 1, maximum = 1000 },
  }),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, given)
    return navigation.locate(ctx, given, 'textDocument/declaration', 'declaration')
  end,
}
