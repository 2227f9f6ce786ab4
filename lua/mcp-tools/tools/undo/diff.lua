--- Returns the diff between two states of a buffer's undo tree.

local errors = require('mcp-tools.errors')
local text_diff = require('mcp-tools.editor.text.diff')
local target = require('mcp-tools.editor.buffer.target')
local undo = require('mcp-tools.editor.buffer.undo')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'undo_diff',
  title = 'Compare undo states',
  description = 'Compares two states of the undo tree of a buffer. Returns a unified diff and line counts. The buffer'
    .. ' does not change. States are seq numbers of undo_tree; 0 is the text before the first change.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    from = { type = 'integer', description = 'Older state; default: the last written one', minimum = 0 },
    to = { type = 'integer', description = 'Newer state; default: the current one', minimum = 0 },
    context = { type = 'integer', description = 'Lines of context', default = 3, minimum = 0, maximum = 100 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local found, err = target.await(ctx, args, {})
    if not found then
      return nil, err
    elseif not found.bufnr then
      return nil, errors.new('not_found', ('%s is not open, so it has no undo tree'):format(found.shown))
    end
    local tree = vim.fn.undotree(found.bufnr)
    local from, to = args.from or undo.saved(found.bufnr), args.to or tree.seq_cur
    local texts
    texts, err = undo.texts(found.bufnr, { from, to }, ctx)
    if not texts then
      return nil, err
    end
    local shown = (utf8.repair(found.shown))
    local names = {
      old = ('a/%s (state %d)'):format(shown, from),
      new = ('b/%s (state %d)'):format(shown, to),
      context = args.context,
    }
    local about = { path = shown, bufnr = found.bufnr, from = from, to = to, seq_cur = tree.seq_cur }
    return text_diff.await(ctx, texts[1], texts[2], names, about)
  end,
}
