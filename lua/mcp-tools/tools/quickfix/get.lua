--- Returns entries of a quickfix or location list.

local errors = require('mcp-tools.errors')
local quickfix = require('mcp-tools.editor.quickfix')
local redact = require('mcp-tools.privacy.redact')
local time_slice = require('mcp-tools.util.time_slice')

return {
  name = 'quickfix_get',
  title = 'Entries of the quickfix list',
  description = 'Returns entries of the quickfix list or a location list: path, line, column (in characters), kind,'
    .. ' text. current: the index of the current entry; lists: the number of lists on the stack (nr).',
  args = {
    list = { type = 'string', enum = { 'quickfix', 'location' }, description = 'Which list', default = 'quickfix' },
    window = { type = 'integer', description = 'Window of the location list; default: the current one' },
    nr = {
      type = 'integer',
      description = 'Position on the stack of lists; 0 = the current list',
      default = 0,
      minimum = 0,
    },
    limit = { type = 'integer', description = 'Maximum number of entries', default = 100, minimum = 1, maximum = 1000 },
    offset = { type = 'integer', description = 'Number of entries to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local list, err = quickfix.find(args)
    if not list then
      return nil, err
    end
    local about = quickfix.get(list, { id = 0, nr = args.nr, title = 0, idx = 0, size = 0 })
    local stack = quickfix.get({ window = list.window, nr = '$' } --[[@as table]], {}).nr
    if args.nr > stack then
      return nil, errors.new('not_found', ('nr: there is no list %d, there are %d'):format(args.nr, stack))
    end
    local pause = time_slice.of(ctx)
    local last = math.min(about.size, args.offset + args.limit)
    local items = quickfix.items(list, about.id, args.offset + 1, last, pause)
    return {
      title = (about.title or '') ~= '' and redact.line(about.title, pause) or nil,
      nr = about.nr,
      lists = stack,
      entries = quickfix.entries(items, ctx.root, pause),
      total = about.size,
      current = about.size > 0 and about.idx or nil,
      next_offset = last < about.size and last or nil,
    }
  end,
}
