--- What has become worse or better since a mark, in all open files.

local delta = require('mcp-tools.editor.diagnostics.delta')

return {
  name = 'diagnostics_delta',
  description = 'Without since: sets a mark, {mark, total}. With since: what is new and fixed since that mark in all'
    .. ' open files, each checked as it is now: {new, fixed, remaining, files: [{path, new, fixed}], settled}, and a'
    .. ' new mark.',
  args = {
    since = { type = 'string', description = 'A mark that an earlier call of this tool gave' },
    timeout_ms = {
      type = 'integer',
      description = 'At most so long',
      default = 15000,
      minimum = 100,
      maximum = 240000,
    },
    limit = {
      type = 'integer',
      description = 'At most so many rows per file',
      default = 50,
      minimum = 1,
      maximum = 1000,
    },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, given)
    return ctx(delta.run(ctx, given))
  end,
}
