--- Outlines files.

local arguments = require('mcp-tools.editor.arguments')
local overview = require('mcp-tools.editor.symbol.overview')
local paths = require('mcp-tools.files.paths')

return {
  name = 'symbol_overview',
  title = 'Outline a file or directory',
  description = 'Outlines what a file or directory defines: classes, functions and methods with their lines. Use it'
    .. ' before reading a large file.',
  search_hint = 'outline, document symbols, structure, what is in a file',
  aliases = { lsp_symbols = {} },
  args = {
    path = { type = 'string', description = 'File or directory; default: the current file' },
    paths = {
      type = 'array',
      items = { type = 'string' },
      description = 'Several files',
      maxItems = 100,
      hidden = true,
    },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
    globs = {
      type = 'array',
      items = { type = 'string', maxLength = 500 },
      description = 'Only files such as `*.py` or `src/**`; `!` excludes',
    },
    limit = arguments.limit('files', 50, 500),
    offset = { type = 'integer', description = 'Number of files to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, args)
    local text, err
    local stat = args.path and not args.bufnr and vim.uv.fs_stat((paths.resolve(args.path)))
    if args.paths or stat and stat.type == 'directory' then
      text, err = overview.of_many(ctx, args.paths or { args.path }, args)
    else
      text, err = overview.of_one(ctx, args)
    end
    return text, err
  end,
}
