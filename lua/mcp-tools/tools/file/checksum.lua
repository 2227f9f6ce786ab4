--- Returns the checksum of a file on disk.

local contents = require('mcp-tools.editor.buffer.contents')
local errors = require('mcp-tools.errors')
local target = require('mcp-tools.editor.buffer.target')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'file_checksum',
  title = 'Checksum of a file',
  description = 'Returns the SHA-256 and the size of a file on disk, and whether the editor has unsaved changes.',
  search_hint = 'hash, sha256sum, digest',
  args = { path = { type = 'string', description = 'File', required = true } },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local found = errors.unwrap(target.await(ctx, { path = args.path }, {}))
    local sum, size = errors.unwrap(contents.checksum(ctx, found.path))
    return {
      path = (utf8.repair(found.shown)),
      sha256 = sum,
      bytes = size,
      unsaved = found.bufnr and vim.bo[found.bufnr].modified or nil,
    }
  end,
  render = function(value)
    local unsaved = value.unsaved and ', unsaved changes in the editor' or ''
    return ('%s  %s (%d bytes%s)'):format(value.sha256, value.path, value.bytes, unsaved)
  end,
}
