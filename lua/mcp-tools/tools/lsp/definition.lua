--- Finds the definition of the symbol at a position.

local args = require('mcp-tools.editor.lsp.args')
local navigation = require('mcp-tools.editor.lsp.navigation')

return {
  name = 'lsp_definition',
  description = 'Where the name at a place is defined, by the language servers: {total, places: [{path, line, column,'
    .. ' text}]}, from 1.',
  args = args.place({
    limit = { type = 'integer', description = 'At most so many places', default = 50, minimum = 1, maximum = 1000 },
  }),
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, given)
    return navigation.locate(ctx, given, 'textDocument/definition', 'definition')
  end,
}
