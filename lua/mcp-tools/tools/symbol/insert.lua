--- Inserts text before or after a symbol.

local answer = require('mcp-tools.editor.diagnostics.edit_answer')
local change = require('mcp-tools.editor.symbol.change')
local edits = require('mcp-tools.editor.symbol.edits')

local preview, run = change.handlers(function(lines, place, args)
  return edits.insert(lines, place, args.text, args.position)
end)

return {
  name = 'symbol_insert',
  title = 'Insert beside a symbol',
  description = 'Inserts code before or after a function, method or class, with its indentation and blank lines.'
    .. ' Reading the file before is not needed.',
  search_hint = 'add function, add method, new test',
  args = change.args({
    text = {
      type = 'string',
      description = 'Code',
      required = true,
      minLength = 1,
      maxLength = change.MAX_TEXT,
    },
    position = {
      type = 'string',
      enum = { 'before', 'after' },
      description = 'Side of the symbol',
      default = 'after',
    },
  }),
  annotations = { read_only = false, destructive = true, idempotent = false },
  recommended = true,
  needs_approval = 'it changes text',
  reviewed = true,
  previewed = { 'path', 'text' },
  preview = preview,
  run = run,
  render = answer.text,
}
