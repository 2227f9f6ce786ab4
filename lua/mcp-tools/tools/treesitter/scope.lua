--- Lists the syntax nodes around a position.

local inspect = require('mcp-tools.editor.treesitter.inspect')

return {
  name = 'treesitter_scope',
  title = 'Enclosing syntax nodes',
  description = 'Names the syntax nodes around a place, the innermost first: `type line:column-line:column` and the'
    .. ' beginning of its text. Lines and columns count from 1, columns in characters. Needs a treesitter parser for'
    .. ' the language.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 or neither: the current file', minimum = 0 },
    line = { type = 'integer', description = 'Line', required = true, minimum = 1 },
    column = { type = 'integer', description = 'Column; default: the first character of the line', minimum = 1 },
    limit = { type = 'integer', description = 'Maximum number of nodes', default = 20, minimum = 1, maximum = 200 },
  },
  annotations = { read_only = true, idempotent = true },
  run = inspect.scope,
}
