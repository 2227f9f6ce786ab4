--- What is wrong in a file or in the project (guill's name, arguments and shape).

local args = require('mcp-tools.editor.lsp.args')
local list = require('mcp-tools.editor.diagnostics.list')

local SEVERITIES = { 'error', 'warning', 'info', 'hint', 'ERROR', 'WARN', 'INFO', 'HINT' }

return {
  name = 'diagnostics_list',
  description = 'Errors and warnings. With path: {checked, total, counts, list: ["line:col severity code:'
    .. ' message"]};'
    .. ' with bufnr: [{lnum, col, message, severity, source}]; with project: per file. checked = unknown: no server has'
    .. ' looked, so an empty list is not "clean". From 1.',
  args = args.paged(args.file({
    project = { type = 'boolean', description = 'All files that are known, instead of one', default = false },
    severity = { type = 'string', enum = SEVERITIES, description = 'Only this one' },
    min_severity = { type = 'string', enum = { 'error', 'warning', 'info', 'hint' }, description = 'No milder ones' },
    source = { type = 'string', description = 'Only from this one, such as basedpyright' },
    wait_ms = {
      type = 'integer',
      description = 'Wait so long for a server that has not looked at the text yet',
      default = 3000,
      minimum = 0,
      maximum = 60000,
    },
  })),
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, given)
    return ctx(list.list(ctx, given))
  end,
}
