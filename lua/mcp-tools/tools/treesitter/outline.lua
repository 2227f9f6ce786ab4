--- Outlines a file by its syntax tree.

local overview = require('mcp-tools.editor.symbol.overview')

return {
  name = 'treesitter_outline',
  title = 'Outline by syntax',
  description = 'Outlines what a file defines by its syntax tree, without asking a language server: `name line:'
    .. ' source` or `name [kind] first-last`, nested by indent. Lines count from 1. Needs a treesitter parser for the'
    .. ' language; symbol_overview takes the best there is.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 or neither: the current file', minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = overview.by_syntax,
}
