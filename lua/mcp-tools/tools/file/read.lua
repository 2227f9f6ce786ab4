--- Reads a file on disk.

local open = require('mcp-tools.editor.buffer.open')
local read = require('mcp-tools.privacy.read')
local result = require('mcp-tools.editor.result')
local target = require('mcp-tools.editor.buffer.target')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'file_read',
  title = 'Read a file',
  description = 'Reads a file on disk, without unsaved changes of the editor (use buffer_read for those; unsaved: there'
    .. ' are some). Lines count from 1. If next_line is present, continue there.',
  args = {
    path = {
      type = 'string',
      description = 'File',
      required = true,
    },
    start_line = { type = 'integer', description = 'First line', default = 1, minimum = 1 },
    end_line = { type = 'integer', description = 'Last line', minimum = 1 },
    limit = {
      type = 'integer',
      description = 'Maximum number of lines',
      default = 2000,
      minimum = 1,
      maximum = 100000,
    },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local found, err = target.await(ctx, { path = args.path }, {})
    if not found then
      return nil, err
    end
    local range = {
      first = args.start_line,
      last = result.last_line(args, math.huge),
      max_bytes = result.MAX_TEXT,
    }
    local lines, total = ctx:await(function(done)
      read.lines(found.path, open.MAX_BYTES, range --[[@as mcp-tools.LineRange]], done)
    end)
    err = not lines and total or result.range_fault(args, total)
    if err then
      return nil, err
    end
    local about = {
      path = (utf8.repair(found.shown)),
      unsaved = found.bufnr and vim.bo[found.bufnr].modified or nil,
    }
    return result.lines(lines, about, args, total)
  end,
}
