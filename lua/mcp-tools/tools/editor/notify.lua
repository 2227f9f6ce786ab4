--- Shows a message to the user.

local errors = require('mcp-tools.errors')
local rate = require('mcp-tools.util.session').limit
local messages = require('mcp-tools.editor.user.messages')

--- `:messages` keeps 500 messages, including the user's own.
local limit = rate(20, 0.5)

return {
  name = 'editor_notify',
  title = 'Notify the user',
  description = 'Shows the user a short message in the editor. To ask a question, use ask_user.',
  args = {
    message = {
      type = 'string',
      description = 'Text',
      required = true,
      minLength = 1,
      maxLength = 2000,
    },
    level = { type = 'string', enum = messages.LEVELS, default = 'info', description = 'Severity' },
  },
  annotations = { read_only = false, destructive = false, idempotent = false, open_world = false },
  needs_approval = false,
  execute = function(ctx, args)
    errors.check(limit(ctx))
    messages.notify(args.message, args.level, ctx)
    ctx({ shown = true })
  end,
  render = function()
    return 'The message is shown.'
  end,
}
