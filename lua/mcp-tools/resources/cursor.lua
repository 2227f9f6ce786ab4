--- Resource: position of the cursor.

local focus = require('mcp-tools.editor.user.focus')
local watch = require('mcp-tools.editor.watch')

local api = vim.api

return {
  name = 'cursor',
  uri = 'nvim://cursor',
  title = 'Cursor',
  description = 'The file in the current window, the line and column of the cursor (from 1), the text of that line,'
    .. ' and which lines are on screen.',
  mime_type = 'application/json',
  tags = { 'editor', 'focus' },
  read = function(ctx)
    ctx({ cursor = focus.cursor(ctx.root) or vim.NIL, mode = api.nvim_get_mode().mode })
  end,
  watch = function(changed)
    return watch.events({ 'CursorMoved', 'CursorMovedI', 'BufEnter', 'WinScrolled' }, changed)
  end,
}
