--- Lists the captures of a tree-sitter query, or the syntax nodes around a position.

local arguments = require('mcp-tools.editor.arguments')
local inspect = require('mcp-tools.editor.treesitter.inspect')

return {
  name = 'treesitter_query',
  title = 'Query the syntax tree',
  description = 'Runs a treesitter query on a file. Returns `@capture line:column-line:column text`; without `query`'
    .. ' the syntax nodes around `start_line`, with the names that a query needs.',
  search_hint = 'syntax tree, AST, nodes, enclosing scope, structural search',
  args = {
    query = {
      type = 'string',
      description = 'Query, such as `(function_declaration name: (_) @name)`',
      minLength = 1,
      maxLength = 10000,
    },
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
    start_line = { type = 'integer', description = 'First line', default = 1, minimum = 1 },
    end_line = { type = 'integer', description = 'Last line', minimum = 1 },
    column = { type = 'integer', description = '1-based column of `start_line`, without `query`', minimum = 1 },
    limit = arguments.limit('rows', 200, 5000),
    offset = { type = 'integer', description = 'Captures to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    return (args.query and inspect.query or inspect.scope)(ctx, args)
  end,
}
