--- Lists diagnostics; name, arguments and answer are compatible with guill/mcp-tools.nvim.

local args = require('mcp-tools.editor.lsp.args')
local findings = require('mcp-tools.editor.diagnostics.findings')
local list = require('mcp-tools.editor.diagnostics.list')

return {
  name = 'diagnostics_list',
  title = 'Diagnostics',
  description = 'Lists errors and warnings of a file, or with project = true of all open files (closed files are not'
    .. ' checked). Returns {checked, total, counts, diagnostics: ["line:column severity code: message"]}; with bufnr'
    .. ' [{lnum, col, message, severity, source}]. Only checked = yes with total 0 means none.',
  args = args.paged(args.file({
    project = { type = 'boolean', description = 'All open files, instead of one', default = false },
    severity = { type = 'string', enum = findings.SEVERITIES, description = 'Only this severity' },
    min_severity = { type = 'string', enum = { 'error', 'warning', 'info', 'hint' }, description = 'Lowest severity' },
    source = { type = 'string', description = 'Only from this source, such as basedpyright' },
    wait_ms = {
      type = 'integer',
      description = 'Maximum time to wait for a server to check the text',
      default = 3000,
      minimum = 0,
      maximum = 60000,
    },
  })),
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = list.list,
}
