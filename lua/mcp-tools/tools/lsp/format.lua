--- Formats a file, or some lines of it, as its language server does.

local args = require('mcp-tools.editor.lsp.args')
local format = require('mcp-tools.editor.lsp.format')

return {
  name = 'lsp_format',
  description = 'Formats a file, or lines of it, by its language server: {path, changed, places, unsaved}; with dry_run'
    .. ' only the diff. An open file stays unsaved.',
  args = args.file({
    start_line = { type = 'integer', description = 'First line; without it and end_line the whole file', minimum = 1 },
    end_line = { type = 'integer', description = 'Last line', minimum = 1 },
    dry_run = { type = 'boolean', description = 'Only show the diff', default = false },
  }),
  annotations = { read_only = false, destructive = false, idempotent = true },
  needs_approval = function(given)
    return not given.dry_run and 'it changes a file'
  end,
  preview = format.preview,
  reviewed = true,
  run = function(ctx, given)
    return ctx(format.run(ctx, given))
  end,
}
