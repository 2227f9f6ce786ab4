--- Returns the user's selection.

local focus = require('mcp-tools.editor.user.focus')
local utf8 = require('mcp-tools.util.utf8')
local result = require('mcp-tools.editor.result')

return {
  name = 'editor_selection',
  title = 'Selection',
  description = 'Returns the text that the user has selected (active = true) or selected last in the current file, and'
    .. ' its range. Lines and columns (characters) count from 1; the end is inclusive. Without a selection it is null.',
  args = {
    max_bytes = {
      type = 'integer',
      description = 'Maximum length; buffer_read has the rest',
      default = 32768,
      minimum = 1,
      maximum = 1048576,
    },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  recommended = true,
  execute = function(ctx, args)
    local found = focus.selection(ctx.root)
    if not found then
      return ctx({ selection = vim.NIL })
    end
    if found.text and #found.text > args.max_bytes then
      found.text = utf8.cut(found.text, args.max_bytes)
      found.truncated = true
    end
    ctx({ selection = result.utf8(found) })
  end,
}
