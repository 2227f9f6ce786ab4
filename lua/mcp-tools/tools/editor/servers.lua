--- Shows language servers, and restarts them.

local arguments = require('mcp-tools.editor.arguments')
local result = require('mcp-tools.editor.result')
local status = require('mcp-tools.editor.lsp.status')

return {
  name = 'editor_servers',
  title = 'Language servers',
  description = 'Shows which language servers run, for how many files, what they are doing and why one is missing;'
    .. ' restarts them with `restart`.',
  search_hint = 'lsp status, restart pyright, is the language server ready, indexing',
  args = {
    path = { type = 'string', description = 'File path' },
    restart = { type = 'string', description = 'Name of a server, or `all`', minLength = 1 },
    timeout_ms = arguments.timeout(0),
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
  },
  annotations = { read_only = false, destructive = false, idempotent = true },
  recommended = true,
  needs_approval = function(args)
    return args.restart ~= nil and 'it restarts language servers'
  end,
  preview = function(args)
    if args.restart then
      return status.preview(args)
    end
  end,
  run = function(ctx, args)
    if args.restart then
      return status.restart(ctx, args)
    end
    return status.of(ctx, args)
  end,
  render = function(value)
    local rows = {}
    for _, each in ipairs(value.restarted or {}) do
      table.insert(rows, ('restarted %s for %s'):format(each.name, result.count(each.files, 'file')))
    end
    for _, each in ipairs(value.servers or {}) do
      local doing = each.doing and (' (%s)'):format(each.doing) or ''
      local root = each.root and ' in ' .. each.root or ''
      table.insert(
        rows,
        ('%s: %s%s, %s%s'):format(each.name, each.state, doing, result.count(each.files, 'file'), root)
      )
    end
    table.insert(rows, value.note)
    return table.concat(rows, '\n')
  end,
}
