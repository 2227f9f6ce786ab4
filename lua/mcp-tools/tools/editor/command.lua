--- Runs an Ex command.

local execute = require('mcp-tools.editor.execute')
local time_slice = require('mcp-tools.util.time_slice')

return {
  name = 'editor_command',
  title = 'Run an Ex command',
  description = 'Runs an Ex command in the editor and gives what it printed; the person is asked first. Not for what'
    .. ' asks by itself or takes long (:s///c, :!, :make): it would hold up the editor.',
  args = {
    command = {
      type = 'string',
      description = 'Without the colon; several lines are a script',
      required = true,
      minLength = 1,
      maxLength = 20000,
    },
    max_bytes = {
      type = 'integer',
      description = 'Output beyond it is cut',
      default = 32768,
      minimum = 100,
      maximum = 1048576,
    },
  },
  annotations = { read_only = false, destructive = true, idempotent = false, open_world = true },
  explicit = true,
  always_for = { 'command' },
  needs_approval = 'it runs an Ex command, which can do whatever you can',
  preview = function(args)
    return ':' .. args.command
  end,
  run = function(ctx, args)
    return execute.command(ctx, args.command, args.max_bytes, time_slice.of(ctx))
  end,
}
