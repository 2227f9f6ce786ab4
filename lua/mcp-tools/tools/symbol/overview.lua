--- Outlines files.

local overview = require('mcp-tools.editor.symbol.overview')
local paths = require('mcp-tools.files.paths')

return {
  name = 'symbol_overview',
  title = 'Outline of files',
  description = 'Outlines what files or directories define: `name line: source` for functions, `name [kind] first-last`'
    .. ' for others, nested by indent, without locals. Needs a language server or a treesitter parser. Lines count'
    .. ' from 1.',
  args = {
    path = { type = 'string', description = 'File or directory; default: the current file' },
    paths = { type = 'array', items = { type = 'string' }, description = 'Several files', maxItems = 100 },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    globs = {
      type = 'array',
      items = { type = 'string', maxLength = 500 },
      description = 'Only files such as `*.py` or `src/**`; a leading ! excludes',
    },
    limit = { type = 'integer', description = 'Maximum number of files', default = 50, minimum = 1, maximum = 500 },
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
