--- Brings a buffer back to a state of its undo tree.

local buffer_change = require('mcp-tools.editor.edit.change')
local buffers = require('mcp-tools.editor.buffer')
local edit = require('mcp-tools.editor.edit')
local errors = require('mcp-tools.errors')
local preview = require('mcp-tools.editor.edit.preview')
local target = require('mcp-tools.editor.buffer.target')
local undo = require('mcp-tools.editor.buffer.undo')
local text_diff = require('mcp-tools.editor.text.diff')
local utf8 = require('mcp-tools.util.utf8')
local views = require('mcp-tools.editor.buffer.views')

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
    local text = text_diff.unified(
      texts[1],
      texts[2],
      { old = 'now', new = ('state %d'):format(args.seq), context = preview.CONTEXT }
    )
    return preview.shown(text)
  end,
  run = function(ctx, args)
    local found, err = target.await(ctx, args, {})
    if not found then
      return nil, err
    elseif not found.bufnr then
      return nil, errors.new('not_found', ('%s is not open, so it has no undo tree'):format(found.shown))
    end
    local bufnr = found.bufnr
    err = edit.refusal(bufnr, args.changedtick)
    if err then
      return nil, err
    end
    local from = vim.fn.undotree(bufnr).seq_cur
    local before = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
    local fault = views.follow(bufnr, function()
      return undo.run_in(bufnr, ('silent keepjumps undo %d'):format(args.seq))
    end)
    if fault then
      return nil, fault:find('E830', 1, true) and undo.missing(bufnr, args.seq) or errors.new('busy', fault)
    end
    local edited = ctx:await(function(done)
      buffer_change.record(bufnr, before, ctx, done)
    end)
    return {
      path = (utf8.repair(found.shown)),
      bufnr = bufnr,
      from = from,
      seq_cur = vim.fn.undotree(bufnr).seq_cur,
      changedtick = edited.changedtick,
      hunks = edited.hunks,
      modified = vim.bo[bufnr].modified,
    }
  end,
}
