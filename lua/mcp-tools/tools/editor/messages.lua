--- Returns the message history.

local messages = require('mcp-tools.editor.user.messages')
local result = require('mcp-tools.editor.result')
local time_slice = require('mcp-tools.util.time_slice')

return {
  name = 'editor_messages',
  title = 'Messages',
  description = 'Returns the last messages and errors of the editor (:messages), newest first, with secrets redacted.',
  args = {
    contains = { type = 'string', description = 'Only lines with this text; case-insensitive', maxLength = 200 },
    limit = { type = 'integer', description = 'Maximum number of lines', default = 50, minimum = 1, maximum = 1000 },
    offset = { type = 'integer', description = 'Number of lines to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  run = function(ctx, args)
    local text = messages.text(time_slice.of(ctx))
    local wanted, lines = args.contains and args.contains:lower(), {}
    local all = vim.split(text, '\n', { plain = true, trimempty = true })
    for i = #all, 1, -1 do
      if not wanted or all[i]:lower():find(wanted, 1, true) then
        table.insert(lines, all[i])
      end
    end
    local items, about = result.page(lines, args)
    about.messages = items
    return result.utf8(about)
  end,
}
