--- Brings a buffer back to a state of its undo tree.

local buffers = require('mcp-tools.editor.buffer')
local edit = require('mcp-tools.editor.edit')
local errors = require('mcp-tools.errors')
local preview = require('mcp-tools.editor.edit.preview')
local target = require('mcp-tools.editor.buffer.target')
local undo = require('mcp-tools.editor.buffer.undo')
local unified_diff = require('mcp-tools.editor.result.unified_diff')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'undo_restore',
  description = 'Brings a buffer to a state of its undo tree (seq of undo_tree; 0 is the text that was read). Nothing'
    .. ' is lost: from in the answer is the state before, to which it can be brought back. The file is not written.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Or its buffer; 0 = the current file', minimum = 0 },
    seq = { type = 'integer', description = 'The state', required = true, minimum = 0 },
    changedtick = { type = 'integer', description = 'Refuse it if the buffer is not at this any more' },
  },
  annotations = { read_only = false, destructive = true, idempotent = true },
  needs_approval = 'it changes text',
  preview = function(args)
    local found, err = buffers.find(args)
    local texts
    if found and found.bufnr then
      err = edit.refusal(found.bufnr, args.changedtick)
    end
    if found and found.bufnr and not err then
      texts, err = undo.texts(found.bufnr, { vim.fn.undotree(found.bufnr).seq_cur, args.seq })
    end
    if not texts then
      return nil, err or errors.new('not_found', 'the file is not open, so it has no undo tree')
    end
    local text = unified_diff.of(
      texts[1],
      texts[2],
      { old = 'now', new = ('state %d'):format(args.seq), context = preview.CONTEXT }
    )
    return preview.shown(text)
  end,
  run = function(ctx, args)
    local found, err = target.await(ctx, args, {})
    if not found then
      return ctx(nil, err)
    elseif not found.bufnr then
      return ctx(nil, errors.new('not_found', ('%s is not open, so it has no undo tree'):format(found.shown)))
    end
    local done
    done, err = ctx:await(function(answer)
      undo.restore(found.bufnr, args.seq, { changedtick = args.changedtick, ctx = ctx }, answer)
    end)
    if not done then
      return ctx(nil, err)
    end
    return {
      path = (utf8.repair(found.shown)),
      bufnr = found.bufnr,
      from = done.from,
      seq_cur = vim.fn.undotree(found.bufnr).seq_cur,
      changedtick = done.changedtick,
      hunks = done.hunks,
      modified = vim.bo[found.bufnr].modified,
    }
  end,
}
