--- Runs an Ex command.

local arguments = require('mcp-tools.editor.arguments')
local execute = require('mcp-tools.editor.execute')
local time_slice = require('mcp-tools.util.time_slice')

return {
  name = 'editor_command',
  title = 'Run an Ex command',
  description = 'Runs an Ex command in the editor, after asking the user, and returns its output. Not for commands'
    .. ' that prompt or take long (:s///c, :!, :make).',
  search_hint = 'vim command, :cdo, :argdo, :normal, :substitute',
  args = {
    command = {
      type = 'string',
      description = 'Command without the colon; several lines are a script',
      required = true,
      minLength = 1,
      maxLength = 20000,
    },
    max_bytes = arguments.bytes('Maximum size of the output', 32768, 1048576),
  },
  annotations = { read_only = false, destructive = true, idempotent = false, open_world = true },
  explicit = true,
  always_ignores = { 'max_bytes' },
  needs_approval = 'it runs an Ex command, which can do anything that you can',
  preview = function(args)
    return ':' .. args.command
  end,
  run = function(ctx, args)
    return execute.command(ctx, args.command, args.max_bytes, time_slice.of(ctx))
  end,
  render = function(value)
    return value.output ~= '' and value.output or 'It printed nothing.'
  end,
}
