--- Resource: selected text.

local focus = require('mcp-tools.editor.user.focus')
local watch = require('mcp-tools.editor.watch')

return {
  name = 'selection',
  uri = 'nvim://selection',
  title = 'Selection',
  description = 'The text that the user has selected, or selected last, in the current window, and where it is.'
    .. ' Lines and columns count from 1; the end is included.',
  mime_type = 'application/json',
  tags = { 'editor', 'focus' },
  read = function(ctx)
    ctx({ selection = focus.selection(ctx.root) or vim.NIL })
  end,
  watch = function(changed)
    local stop_modes = watch.events('ModeChanged', changed, { pattern = { '*:[vV\22]*', '[vV\22]*:*' } })
    local stop_moves = watch.events('CursorMoved', function()
      if vim.fn.mode():find('^[vV\22]') then
        changed()
      end
    end)
    local stop_files = watch.events('BufEnter', changed)
    return function()
      stop_modes()
      stop_moves()
      stop_files()
    end
  end,
}
