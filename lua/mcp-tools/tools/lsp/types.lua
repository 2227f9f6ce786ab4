--- Lists the supertypes or subtypes of the type at a position.

local args = require('mcp-tools.editor.lsp.args')
local navigation = require('mcp-tools.editor.lsp.navigation')

local KINDS = {
  super = { prepare = 'textDocument/prepareTypeHierarchy', step = 'typeHierarchy/supertypes' },
  sub = { prepare = 'textDocument/prepareTypeHierarchy', step = 'typeHierarchy/subtypes' },
}

return {
  name = 'lsp_types',
  title = 'Type hierarchy',
  description = 'Types above (super) or below (sub) the class at a place: {of, total, items: [{name, kind, path,'
    .. ' line, column, children}]}; from 1. At most 200 items.',
  args = args.place({
    direction = { type = 'string', enum = { 'super', 'sub' }, description = 'Above or below', default = 'sub' },
    depth = { type = 'integer', description = 'Levels', default = 2, minimum = 1, maximum = 10 },
  }),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, given)
    return navigation.hierarchy(ctx, given, KINDS[given.direction])
  end,
}
