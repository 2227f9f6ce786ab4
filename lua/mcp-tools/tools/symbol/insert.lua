--- Inserts text before or after a symbol.

local change = require('mcp-tools.editor.symbol.change')
local edits = require('mcp-tools.editor.symbol.edits')

local preview, run = change.handlers(function(lines, place, args)
  return edits.insert(lines, place, args.text, args.where)
end)

return {
  name = 'symbol_insert',
  title = 'Insert beside a symbol',
  description = 'Writes text before a symbol (above its comments and decorators) or after it, on lines of its own, with'
    .. ' its indent and as many blank lines as its neighbours have. One undo block; an open file is left unsaved,'
    .. ' another is written. Lines count from 1.',
  args = change.args({
    text = {
      type = 'string',
      description = 'What is written',
      required = true,
      minLength = 1,
      maxLength = change.MAX_TEXT,
    },
    where = { type = 'string', enum = { 'before', 'after' }, description = 'Side of the symbol', default = 'after' },
  }),
  annotations = { read_only = false, destructive = true, idempotent = false },
  needs_approval = 'it changes text',
  reviewed = true,
  previewed = { 'text' },
  preview = preview,
  run = run,
}
