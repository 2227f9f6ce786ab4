--- Returns the signatures of the call at a position.

local args = require('mcp-tools.editor.lsp.args')
local hover = require('mcp-tools.editor.lsp.hover')

return {
  name = 'lsp_signature',
  title = 'Signature help',
  description = 'Signatures of the call that a place is in, between its parentheses: {signatures: [{label,'
    .. ' documentation,'
    .. ' parameters}], active_signature, active_parameter}, counted from 1. symbol means just behind its "(".',
  args = args.place(),
  annotations = { read_only = true, idempotent = true },
  run = hover.signature,
}
