--- Returns the hover text at a position; compatible with guill/mcp-tools.nvim.

local args = require('mcp-tools.editor.lsp.args')
local hover = require('mcp-tools.editor.lsp.hover')

return {
  name = 'lsp_hover',
  title = 'Hover information',
  description = 'Returns type, signature and documentation of the symbol at a position, from its language servers:'
    .. ' {hover, kind, defined: "path:line"}.',
  args = args.place({
    col = { type = 'integer', description = 'Alias of column', minimum = 1 },
  }),
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, given)
    given.column = given.column or given.col -- compatible with guill/mcp-tools.nvim
    return hover.at(ctx, given)
  end,
}
