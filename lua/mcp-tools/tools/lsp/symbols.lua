--- What a file defines, nested (guill's name, arguments and shape, with children and lines from 1).

local args = require('mcp-tools.editor.lsp.args')
local symbols = require('mcp-tools.editor.lsp.symbols')

return {
  name = 'lsp_symbols',
  description = 'Symbols of a file as its language server nests them: [{name, kind, range: {start: {line,'
    .. ' character}, end},'
    .. ' detail, children}], from 1. symbol_overview says it in fewer words.',
  args = args.file({
    depth = { type = 'integer', description = 'Levels', default = 10, minimum = 1, maximum = 20 },
    limit = { type = 'integer', description = 'At most so many', default = 1000, minimum = 1, maximum = 10000 },
  }),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, given)
    local answer, err = symbols.of_file(ctx, given)
    if err then
      return ctx(nil, err)
    end
    return answer
  end,
}
