--- Replaces the definition of a symbol.

local change = require('mcp-tools.editor.symbol.change')
local edits = require('mcp-tools.editor.symbol.edits')

local preview, run = change.handlers(function(lines, place, args)
  return edits.replace(lines, place, args.body)
end)

return {
  name = 'symbol_replace',
  title = 'Replace a symbol',
  description = 'Replaces the whole definition of a symbol, signature included, with body, which must define it again.'
    .. ' Comments and decorators above it stay. The indent is adjusted. One undo block; an open file is left unsaved,'
    .. ' another is written. Lines count from 1.',
  args = change.args({
    body = {
      type = 'string',
      description = 'The complete new definition: signature and body, without the decorators that stay',
      required = true,
      minLength = 1,
      maxLength = change.MAX_TEXT,
    },
  }),
  annotations = { read_only = false, destructive = true, idempotent = true },
  needs_approval = 'it changes text',
  reviewed = true,
  previewed = { 'body' },
  preview = preview,
  run = run,
}
