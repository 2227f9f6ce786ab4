--- What the person has before them.

local state = require('mcp-tools.editor.person.state')
local valid_utf8 = require('mcp-tools.editor.result.valid_utf8')

return {
  name = 'editor_state',
  title = 'State of the editor',
  description = 'What the person has before them: mode, working directory, the current file (cursor, visible lines,'
    .. ' unsaved?, indent and other options) and all tab pages and windows. Lines and columns (characters) count from'
    .. ' 1.',
  args = {
    limit = { type = 'integer', description = 'At most so many windows', default = 30, minimum = 0, maximum = 500 },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  recommended = true,
  execute = function(ctx, args)
    ctx(valid_utf8(state.get(ctx.root, args.limit)))
  end,
}
