--- Replaces the definition of a symbol.

local answer = require('mcp-tools.editor.diagnostics.edit_answer')
local change = require('mcp-tools.editor.symbol.change')
local edits = require('mcp-tools.editor.symbol.edits')
local errors = require('mcp-tools.errors')

local preview, run = change.handlers(function(lines, place, args)
  if args.definition then
    return edits.replace(lines, place, args.definition)
  end
  return edits.replace_body(lines, place, args.body)
end)

--- Throws an error value unless there is one text.
---@param args table
local function check(args)
  if (args.definition == nil) == (args.body == nil) then
    error(errors.new('validation_error', 'definition: give the complete definition, or only its `body`'), 0)
  end
end

return {
  name = 'symbol_replace',
  title = 'Replace a symbol',
  description = 'Replaces a function, method or class: the complete `definition`, or only its `body`, which keeps the'
    .. ' signature. Decorators and comments above stay. Reading it before is not needed.',
  search_hint = 'rewrite function, change method, edit class',
  args = change.args({
    definition = {
      type = 'string',
      description = 'Signature and body',
      minLength = 1,
      maxLength = change.MAX_TEXT,
    },
    body = { type = 'string', description = 'Body only', minLength = 1, maxLength = change.MAX_TEXT },
  }),
  annotations = { read_only = false, destructive = true, idempotent = true },
  recommended = true,
  needs_approval = 'it changes text',
  reviewed = true,
  previewed = { 'path', 'definition', 'body' },
  preview = function(args, again)
    check(args)
    return preview(args, again)
  end,
  run = function(ctx, args)
    check(args)
    return run(ctx, args)
  end,
  render = answer.text,
}
