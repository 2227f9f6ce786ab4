--- Resource: message history.

local messages = require('mcp-tools.editor.user.messages')
local time_slice = require('mcp-tools.util.time_slice')
local watch = require('mcp-tools.editor.watch')

--- Messages fire no event, so the history is polled, ms.
local POLL_MS = 1000

return {
  name = 'messages',
  uri = 'nvim://messages',
  title = 'Messages',
  description = 'The history of messages and errors that the editor has shown (`:messages`), the latest last.'
    .. ' Apparent secrets are redacted.',
  mime_type = 'text/plain',
  tags = { 'editor' },
  run = function(ctx)
    local text, cut = messages.text(time_slice.of(ctx))
    return (cut and '…\n' or '') .. text
  end,
  watch = function(changed)
    return watch.poll(POLL_MS, messages.newest, changed)
  end,
}
