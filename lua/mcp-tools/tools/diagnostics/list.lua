--- Lists diagnostics of the current text; accepts the arguments of guill/mcp-tools.nvim.

local arguments = require('mcp-tools.editor.arguments')
local findings = require('mcp-tools.editor.diagnostics.findings')
local list = require('mcp-tools.editor.diagnostics.list')

return {
  name = 'diagnostics_list',
  title = 'Errors and warnings',
  description = 'Returns errors and warnings of a file, or of all open files, for the current text: waits until the'
    .. ' language servers have checked it. Asked again, it reports what is new and what is fixed. Use it after every'
    .. ' edit.',
  search_hint = 'type errors, lint, problems, type check, what is broken, did my edit break anything',
  args = {
    path = { type = 'string', description = 'File; without it all open files' },
    min_severity = {
      type = 'string',
      enum = { 'error', 'warning', 'info', 'hint' },
      description = 'Lowest severity to return; default: warning',
    },
    limit = arguments.limit('results', 100, 10000),
    offset = { type = 'integer', description = 'Results to skip', default = 0, minimum = 0, hidden = true },
    timeout_ms = arguments.timeout(15000),
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
    project = { type = 'boolean', description = 'All open files', default = false, hidden = true },
    severity = { type = 'string', enum = findings.SEVERITIES, description = 'Only this severity', hidden = true },
    source = { type = 'string', description = 'Only from this source', hidden = true },
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  always_load = true,
  run = list.list,
  render = list.text,
}
