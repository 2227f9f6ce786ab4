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
    return watch.events({ 'ModeChanged', 'CursorMoved', 'BufEnter' }, function(args)
      local modes = ':' .. (args.event == 'ModeChanged' and args.match or vim.fn.mode())
      if args.event == 'BufEnter' or modes:find(':[vV\22]') then
        changed()
      end
    end)
  end,
}
