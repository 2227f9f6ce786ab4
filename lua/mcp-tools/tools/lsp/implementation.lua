--- Finds the implementations of the symbol at a position.

local args = require('mcp-tools.editor.lsp.args')
local navigation = require('mcp-tools.editor.lsp.navigation')

return {
  name = 'lsp_implementation',
  title = 'Go to implementation',
  description = 'Where the interface or method at a place is implemented: {total, places: [{path, line, column,'
    .. ' text}]}; lines and columns from 1.',
  args = args.place({
    limit = { type = 'integer', description = 'Maximum number of places', default = 50, minimum = 1, maximum = 1000 },
  }),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, given)
    return navigation.locate(ctx, given, 'textDocument/implementation', 'implementation')
  end,
}
