--- Another definition in the place of a symbol.

local change = require('mcp-tools.editor.symbol.change')
local edits = require('mcp-tools.editor.symbol.edits')

return {
  name = 'symbol_replace',
  title = 'Replace a symbol',
  description = 'Puts body in the place of the whole definition of a symbol, signature included; comments and'
    .. ' decorators above it stay. Its indent is made to fit. One undo block; an open file is left unsaved, another is'
    .. ' written. Lines count from 1.',
  args = change.args({
    body = {
      type = 'string',
      description = 'The whole new definition',
      required = true,
      minLength = 1,
      maxLength = change.MAX_TEXT,
    },
  }),
  annotations = { read_only = false, destructive = true, idempotent = true },
  needs_approval = 'it changes text',
  reviewed = true,
  previewed = { 'body' },
  preview = function(args, again)
    return change.preview(args, function(lines, at)
      return edits.replace(lines, at, args.body)
    end, again)
  end,
  run = function(ctx, args)
    local found, err = change.find(ctx, args)
    if not found then
      return ctx(nil, err)
    end
    local lines, at = change.place(found)
    return ctx(change.apply(ctx, found, edits.replace(lines, at, args.body), args))
  end,
}
