--- Lists language servers, and whether they are ready.

local args = require('mcp-tools.editor.lsp.args')
local status = require('mcp-tools.editor.lsp.status')

return {
  name = 'lsp_status',
  title = 'State of the language servers',
  description = 'Language servers of a file, or all that run: {servers: [{id, name, state, doing, percentage, root,'
    .. ' files}],'
    .. ' ready}. state is starting, indexing, unsure, ready or stopped. With wait_ms it waits until all are ready.',
  args = args.file({
    wait_ms = {
      type = 'integer',
      description = 'Maximum time to wait until they are ready',
      default = 0,
      minimum = 0,
      maximum = 240000,
    },
  }),
  annotations = { read_only = true, idempotent = true },
  run = status.of,
}
