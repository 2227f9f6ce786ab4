--- Lists the references to a symbol.

local find = require('mcp-tools.editor.symbol.find')
local references = require('mcp-tools.editor.symbol.references')

return {
  name = 'symbol_references',
  title = 'Uses of a symbol',
  description = 'Lists the uses of a symbol without its declaration: the total, then per file `line around: text`,'
    .. ' where around is the enclosing symbol. Lines count from 1. Without a language server it searches for the word'
    .. ' and reports that.',
  args = {
    symbol = { type = 'string', description = 'Name path: `Class/method`', required = true, minLength = 1 },
    path = { type = 'string', description = 'File that defines it, if the name is not unique' },
    bufnr = { type = 'integer', description = 'Buffer that defines it; 0 = the current file', minimum = 0 },
    limit = { type = 'integer', description = 'Maximum number of lines', default = 500, minimum = 1, maximum = 10000 },
    offset = { type = 'integer', description = 'Number of lines to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, args)
    local found, err = find.one(ctx, args)
    local list
    if found then
      list, err = references.find(ctx, found)
    end
    if not found or not list then
      return nil, err
    end
    return references.text(list, found.path, args)
  end,
}
