--- Text before or after a symbol.

local change = require('mcp-tools.editor.symbol.change')
local edits = require('mcp-tools.editor.symbol.edits')

---@param args table
---@return mcp-tools.SymbolEdits
local function made(args)
  return function(lines, place)
    return edits.insert(lines, place, args.text, args.where)
  end
end

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
    return change.preview(args, made(args), again)
  end,
  run = function(ctx, args)
    local found, err = change.find(ctx, args)
    if not found then
      return ctx(nil, err)
    end
    local list
    list, err = change.edits(ctx, found, args, made(args))
    if not list then
      return ctx(nil, err)
    end
    return ctx(change.apply(ctx, found, list, args))
  end,
}
