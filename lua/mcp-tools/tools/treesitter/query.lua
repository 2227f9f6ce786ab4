--- Lists the captures of a tree-sitter query.

local inspect = require('mcp-tools.editor.treesitter.inspect')

return {
  name = 'treesitter_query',
  title = 'Run a treesitter query',
  description = 'Runs a treesitter query, such as `(function_declaration name: (_) @name)`, and lists its captures:'
    .. ' `@capture line:column-line:column text`, 1-based, columns in characters. Predicates: #eq?, #any-of?,'
    .. ' #contains?, #has-parent?, #has-ancestor?. treesitter_scope shows names of nodes.',
  args = {
    query = { type = 'string', description = 'The query', required = true, minLength = 1, maxLength = 10000 },
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 or neither: the current file', minimum = 0 },
    start_line = { type = 'integer', description = 'Only from this line on', default = 1, minimum = 1 },
    end_line = { type = 'integer', description = 'Only up to this line', minimum = 1 },
    limit = {
      type = 'integer',
      description = 'Maximum number of captures',
      default = 200,
      minimum = 1,
      maximum = 5000,
    },
    offset = { type = 'integer', description = 'Number of captures to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = inspect.query,
}
