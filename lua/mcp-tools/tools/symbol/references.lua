--- Lists every use of a symbol.

local args_of = require('mcp-tools.editor.lsp.args')
local errors = require('mcp-tools.errors')
local find = require('mcp-tools.editor.symbol.find')
local references = require('mcp-tools.editor.symbol.references')

return {
  name = 'symbol_references',
  title = 'Find references',
  description = 'Lists every use of a symbol in the project, by the language server: unlike grep it tells apart symbols'
    .. ' of the same name. Returns `line in function: text` for each file.',
  search_hint = 'usages, where used, users, find all references, who uses',
  args = args_of.paged(args_of.symbol()),
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  always_load = true,
  run = function(ctx, args)
    local spot, err, picked = find.spot(ctx, args)
    return references.find(ctx, errors.unwrap(spot, err), picked)
  end,
  render = references.text,
}
