--- Symbols of the whole project, by a part of their name.

local args = require('mcp-tools.editor.lsp.args')
local symbols = require('mcp-tools.editor.lsp.symbols')

return {
  name = 'lsp_workspace_symbols',
  description = 'Symbols of the project whose names match: {total, files: [{path, lines: ["line: kind name"]}]},'
    .. ' from 1.'
    .. ' Asks the servers of path, or all that run; servers match as they like.',
  args = args.paged(args.file({
    query = {
      type = 'string',
      description = 'Part of the name; empty: all, where the server lists them',
      required = true,
    },
    kinds = {
      type = 'array',
      items = { type = 'string' },
      description = 'Only these kinds, such as Class, Function, Method',
    },
  })),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, given)
    local answer, err = symbols.of_project(ctx, given)
    if err then
      return ctx(nil, err)
    end
    return answer
  end,
}
