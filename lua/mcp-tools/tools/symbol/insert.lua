--- Text before or after a symbol.

local change = require('mcp-tools.editor.symbol.change')
local edits = require('mcp-tools.editor.symbol.edits')

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
  preview = function(args, again)
    return change.preview(args, function(lines, at, filetype)
      return edits.insert(lines, at, args.text, args.where, filetype)
    end, again)
  end,
  run = function(ctx, args)
    local found, err = change.find(ctx, args)
    if not found then
      return ctx(nil, err)
    end
    local lines, at, filetype = change.place(found)
    return ctx(change.apply(ctx, found, edits.insert(lines, at, args.text, args.where, filetype), args))
  end,
}
