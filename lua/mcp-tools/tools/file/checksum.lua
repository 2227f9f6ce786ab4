--- Returns the checksum of a file on disk.

local contents = require('mcp-tools.editor.buffer.contents')
local target = require('mcp-tools.editor.buffer.target')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'file_checksum',
  title = 'Checksum of a file',
  description = 'Returns the SHA-256 and the size of a file on disk. unsaved: the editor has changes that are not in'
    .. ' the file. file_write needs the checksum of the file that it replaces.',
  args = {
    path = {
      type = 'string',
      description = 'File',
      required = true,
    },
  },
  output_schema = {
    type = 'object',
    properties = {
      path = { type = 'string' },
      sha256 = { type = 'string', description = '64 hexadecimal digits' },
      bytes = { type = 'integer' },
      unsaved = { type = 'boolean' },
    },
    required = { 'path', 'sha256', 'bytes' },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local found, err = target.await(ctx, { path = args.path }, {})
    if not found then
      return nil, err
    end
    local sum, size = contents.checksum(ctx, found.path)
    if not sum then
      return nil, size
    end
    return {
      path = (utf8.repair(found.shown)),
      sha256 = sum,
      bytes = size,
      unsaved = found.bufnr and vim.bo[found.bufnr].modified or nil,
    }
  end,
}
