--- Lists inlay hints of a range of lines.

local args = require('mcp-tools.editor.lsp.args')
local hover = require('mcp-tools.editor.lsp.hover')

return {
  name = 'lsp_inlay_hints',
  title = 'Inlay hints',
  description = 'Inferred types and parameter names that the language server hints at in some lines: {total, hints:'
    .. ' ["line:column label"]}, counted from 1.',
  args = args.paged(args.file({
    start_line = { type = 'integer', description = 'First line', default = 1, minimum = 1 },
    end_line = { type = 'integer', description = 'Last line; default: the last of the file', minimum = 1 },
  })),
  annotations = { read_only = true, idempotent = true },
  run = hover.hints,
}
