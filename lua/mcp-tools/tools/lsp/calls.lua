--- Lists the callers of the function at a position, or the functions that it calls.

local args = require('mcp-tools.editor.lsp.args')
local navigation = require('mcp-tools.editor.lsp.navigation')

local PREPARE = 'textDocument/prepareCallHierarchy'
local KINDS = {
  incoming = { prepare = PREPARE, step = 'callHierarchy/incomingCalls', item = 'from' },
  outgoing = { prepare = PREPARE, step = 'callHierarchy/outgoingCalls', item = 'to' },
}

return {
  name = 'lsp_calls',
  title = 'Call hierarchy',
  description = 'Who calls the function at a place, or what it calls: {of, total, items: [{name, kind, path, line,'
    .. ' column, lines of the calls, children}]}; from 1. At most 200 items.',
  args = args.place({
    direction = {
      type = 'string',
      enum = { 'incoming', 'outgoing' },
      description = 'Callers or callees',
      default = 'incoming',
    },
    depth = { type = 'integer', description = 'Levels', default = 1, minimum = 1, maximum = 5 },
  }),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, given)
    return navigation.hierarchy(ctx, given, KINDS[given.direction])
  end,
}
