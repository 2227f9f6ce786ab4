--- Reads the text of a symbol.

local find = require('mcp-tools.editor.symbol.find')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum size of the text, in bytes; a longer symbol is cut at a line.
local MAX_BYTES = 256 * 1024

return {
  name = 'symbol_read',
  title = 'Read a symbol',
  description = 'Reads the definition of one symbol as the editor has it, unsaved changes included. symbol is a name'
    .. ' path (`Class/method`, `/Class`, `name[2]`); without path it must be the only one of the project. changedtick'
    .. ' tells a later edit whether the text is still this one. Lines count from 1.',
  args = {
    symbol = { type = 'string', description = 'Name path', required = true, minLength = 1 },
    path = { type = 'string', description = 'File that defines it' },
    bufnr = { type = 'integer', description = 'Buffer that defines it; 0 = the current file', minimum = 0 },
    limit = {
      type = 'integer',
      description = 'Maximum number of lines',
      default = 1000,
      minimum = 1,
      maximum = 100000,
    },
    offset = { type = 'integer', description = 'Number of its lines to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local found, err = find.one(ctx, args)
    if not found then
      return nil, err
    end
    local node, bufnr = found.node, found.source.bufnr
    local first = math.min(node.line + args.offset, node.end_line)
    local lines = vim.api.nvim_buf_get_lines(bufnr, first - 1, math.min(node.end_line, first + args.limit - 1), false)
    local bytes, count = 0, 0
    for _, line in ipairs(lines) do
      bytes = bytes + #line + 1
      if bytes > MAX_BYTES and count > 0 then
        break
      end
      count = count + 1
    end
    local text, lossy = utf8.repair(table.concat(lines, '\n', 1, count):sub(1, MAX_BYTES))
    local rest = node.end_line - first - count + 1
    return {
      path = found.source.shown,
      bufnr = bufnr,
      symbol = found.path,
      kind = node.kind,
      start_line = first,
      end_line = first + count - 1,
      next_offset = rest > 0 and first + count - node.line or nil,
      changedtick = vim.api.nvim_buf_get_changedtick(bufnr),
      modified = vim.bo[bufnr].modified or nil,
      by = found.by,
      lossy = lossy or nil,
      text = text,
    }
  end,
}
