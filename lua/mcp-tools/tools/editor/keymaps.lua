--- What the person's keys do.

local buffers = require('mcp-tools.editor.buffer')
local keymaps = require('mcp-tools.editor.person.keymaps')
local paginate = require('mcp-tools.editor.result.paginate')
local time_slice = require('mcp-tools.util.time_slice')
local valid_utf8 = require('mcp-tools.editor.result.valid_utf8')

return {
  name = 'editor_keymaps',
  title = 'Mappings',
  description = 'The mappings of a mode, those of the buffer first: keys (lhs), what they type (rhs) or lua = true'
    .. ' for a function, description, and the file and line that define them. Built-in keys are none: editor_help has'
    .. ' those.',
  args = {
    mode = { type = 'string', enum = keymaps.MODES, default = 'n', description = 'n normal, i insert, x visual, …' },
    contains = {
      type = 'string',
      description = 'Only with this text in keys, action, description or file, in any case',
      maxLength = 200,
    },
    path = { type = 'string', description = 'An open file whose own mappings count; default: the current one' },
    bufnr = { type = 'integer', description = 'Or its buffer; 0 = the current file', minimum = 0 },
    limit = { type = 'integer', description = 'At most so many', default = 50, minimum = 1, maximum = 1000 },
    offset = { type = 'integer', description = 'Mappings to pass over', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  run = function(ctx, args)
    local bufnr
    if args.path == nil and args.bufnr == nil then
      bufnr = buffers.current()
    else
      local found, err = buffers.find(args)
      if not found then
        return ctx(nil, err)
      end
      bufnr = found.bufnr
    end
    local items, about = paginate(keymaps.get(args.mode, bufnr, args.contains, time_slice.of(ctx)), args)
    about.mode, about.keymaps = args.mode, items
    return valid_utf8(about)
  end,
}
