--- Places that the person set, came from, or edited.

local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local marks = require('mcp-tools.editor.person.marks')
local paginate = require('mcp-tools.editor.result.paginate')
local valid_utf8 = require('mcp-tools.editor.result.valid_utf8')

return {
  name = 'editor_marks',
  title = 'Marks, jumps and changes',
  description = 'Places in a buffer and beyond: marks (a-z, A-Z and those that Neovim sets), the jumps of its window'
    .. ' and its last changes, both latest first. Lines and columns (characters) count from 1; text is the line'
    .. ' there.',
  args = {
    path = { type = 'string', description = 'A file that is open; default: the current one' },
    bufnr = { type = 'integer', description = 'Or its buffer; 0 = the current file', minimum = 0 },
    kind = { type = 'string', enum = marks.KINDS, description = 'Only these; default: all three' },
    limit = { type = 'integer', description = 'At most so many of each', default = 30, minimum = 1, maximum = 200 },
    offset = { type = 'integer', description = 'Of each to pass over', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  execute = function(ctx, args)
    local found, err = buffers.find(args, { current = true })
    if not found then
      return ctx(nil, err)
    elseif not found.bufnr then
      return ctx(
        nil,
        errors.new('not_found', ('%s is not open in the editor; only open files have marks'):format(found.path))
      )
    end
    local answer = { bufnr = found.bufnr }
    for _, kind in ipairs(args.kind and { args.kind } or marks.KINDS) do
      local items, about = paginate(marks.get(kind, found.bufnr, ctx.root), args)
      answer[kind] = items
      if about.next_offset then
        answer.next_offset = about.next_offset
      end
      answer[kind .. '_total'] = about.total
    end
    ctx(valid_utf8(answer))
  end,
}
