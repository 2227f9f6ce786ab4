--- Where the person is.

local buffers = require('mcp-tools.editor.buffers')
local position = require('mcp-tools.editor.position')
local access = require('mcp-tools.files.access')
local watch = require('mcp-tools.editor.watch')

local api = vim.api

return {
  name = 'cursor',
  uri = 'nvim://cursor',
  title = 'Cursor',
  description = 'The file that the person looks at, the line and column of the cursor (from 1), the text of that line,'
    .. ' and which lines are on screen.',
  mime_type = 'application/json',
  tags = { 'editor', 'focus' },
  read = function(ctx)
    local bufnr = buffers.current()
    if not bufnr then
      return ctx({ cursor = vim.NIL, mode = api.nvim_get_mode().mode })
    end
    local window = api.nvim_get_current_win()
    if api.nvim_win_get_buf(window) ~= bufnr then
      window = vim.fn.win_findbuf(bufnr)[1]
    end
    local place = window and api.nvim_win_get_cursor(window) or api.nvim_buf_get_mark(bufnr, '"')
    local row = math.max(place[1], 1)
    local name = api.nvim_buf_get_name(bufnr)
    local ok, why = access.buffer(bufnr, ctx.root)
    local info = window and vim.fn.getwininfo(window)[1]
    ctx({
      cursor = {
        path = name ~= '' and access.shown(name, ctx.root) or nil,
        bufnr = bufnr,
        line = row,
        column = position.column(bufnr, row - 1, place[2]),
        text = ok and api.nvim_buf_get_lines(bufnr, row - 1, row, false)[1] or nil,
        withheld = why,
        first_visible_line = info and info.topline,
        last_visible_line = info and info.botline,
      },
      mode = api.nvim_get_mode().mode,
    })
  end,
  watch = function(changed)
    return watch.events({ 'CursorMoved', 'CursorMovedI', 'BufEnter', 'WinScrolled' }, changed)
  end,
}
