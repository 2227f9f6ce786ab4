--- Finds the definition of the symbol at a position.

local args = require('mcp-tools.editor.lsp.args')
local navigation = require('mcp-tools.editor.lsp.navigation')

return {
  name = 'lsp_definition',
  title = 'Go to definition',
  description = 'Finds where the symbol at a position is defined, with the language servers. Returns {total, places:'
    .. ' [{path, line, column, text}]}, from 1.',
  args = args.place({
    limit = { type = 'integer', description = 'Maximum number of places', default = 50, minimum = 1, maximum = 1000 },
  }),
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, given)
    return navigation.locate(ctx, given, 'textDocument/definition', 'definition')
  end,
}
