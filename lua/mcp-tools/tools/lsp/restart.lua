--- Restarts language servers.

local args = require('mcp-tools.editor.lsp.args')
local status = require('mcp-tools.editor.lsp.status')

return {
  name = 'lsp_restart',
  title = 'Restart language servers',
  description = 'Restarts language servers, of a file, or by name, for all files that they serve: {restarted:'
    .. ' [{name, files}]}.'
    .. ' For a server that hangs or has not seen a change of its configuration.',
  args = args.file({
    name = { type = 'string', description = 'Only the server of this name' },
  }),
  annotations = { read_only = false, destructive = false, idempotent = true },
  needs_approval = 'it restarts language servers',
  preview = status.preview,
  run = status.restart,
}
