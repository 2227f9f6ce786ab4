--- Waits for diagnostics of the current text.

local args = require('mcp-tools.editor.lsp.args')
local list = require('mcp-tools.editor.diagnostics.list')

return {
  name = 'diagnostics_wait',
  title = 'Wait for diagnostics',
  description = 'Waits until diagnostics for the current text of a file are available, and returns what is new, fixed'
    .. ' and remaining since the last call: rows "line:column severity code: message". Call it after an edit.'
    .. ' settled = false: not checked, or assumed because the servers published nothing new.',
  args = args.file({
    timeout_ms = {
      type = 'integer',
      description = 'Maximum time to wait',
      default = 15000,
      minimum = 100,
      maximum = 240000,
    },
    min_severity = { type = 'string', enum = { 'error', 'warning', 'info', 'hint' }, description = 'Lowest severity' },
    limit = {
      type = 'integer',
      description = 'Maximum number of rows of each',
      default = 100,
      minimum = 1,
      maximum = 1000,
    },
  }),
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = list.wait,
}
