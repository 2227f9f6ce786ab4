--- Fresh diagnostics after an edit.

local args = require('mcp-tools.editor.lsp.args')
local list = require('mcp-tools.editor.diagnostics.list')

return {
  name = 'diagnostics_wait',
  description = 'Waits until the language servers have checked the text of a file as it is now, and says what is'
    .. ' new, fixed'
    .. ' and remaining since you last looked: rows "line:col severity code: message". settled = false: not checked yet.'
    .. ' Call it after an edit.',
  args = args.file({
    timeout_ms = {
      type = 'integer',
      description = 'At most so long',
      default = 15000,
      minimum = 100,
      maximum = 240000,
    },
    min_severity = { type = 'string', enum = { 'error', 'warning', 'info', 'hint' }, description = 'No milder ones' },
    limit = {
      type = 'integer',
      description = 'At most so many rows of each',
      default = 100,
      minimum = 1,
      maximum = 1000,
    },
  }),
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, given)
    return ctx(list.wait(ctx, given))
  end,
}
