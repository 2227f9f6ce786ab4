--- Returns the changes of a buffer since it was written, or since the client's session first changed it.

local buffers = require('mcp-tools.editor.buffer')
local contents = require('mcp-tools.editor.buffer.contents')
local history = require('mcp-tools.editor.edit.history')
local text_diff = require('mcp-tools.editor.text.diff')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'buffer_diff',
  title = 'Unsaved changes of a buffer',
  description = 'Compares a buffer with its file on disk, or with its text before this session first changed it.'
    .. ' Returns a unified diff and line counts; a large diff has no context, or only hunk positions or counts.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    against = {
      type = 'string',
      enum = { 'disk', 'session' },
      description = 'disk: the current file; session: the text before this session first changed it',
      default = 'disk',
    },
    context = { type = 'integer', description = 'Lines of context', default = 3, minimum = 0, maximum = 100 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local found, err = target.await(ctx, args, {})
    if not found then
      return nil, err
    end
    local shown = (utf8.repair(found.shown))
    local about = { path = shown, bufnr = found.bufnr, against = args.against }
    if not found.bufnr then
      about.diff, about.added, about.removed, about.note =
        '', 0, 0, 'the file is not open, so nothing in it has changed'
      return about
    end
    local pause = time_slice.of(ctx)
    local before
    if args.against == 'session' then
      before = history.baseline(ctx.session, found.bufnr)
      about.note = not before and 'this session has not changed the buffer' or nil
    elseif found.path then
      before, err = contents.on_disk(ctx, found.path, found.bufnr)
      if not before and err.code ~= 'not_found' then
        return nil, err
      end
      about.note = not before and 'there is no such file on disk' or nil
      before = before or {}
    else
      about.note = 'the buffer has no file'
    end
    local now = contents.lines(found.bufnr, pause)
    if not now then
      return nil, buffers.gone(found.bufnr)
    end
    about.modified = vim.bo[found.bufnr].modified
    about.changedtick = vim.api.nvim_buf_get_changedtick(found.bufnr)
    local names = { old = 'a/' .. shown, new = 'b/' .. shown, context = args.context }
    return text_diff.await(ctx, before or now, now, names, about)
  end,
}
