--- Restores a state of a buffer's undo tree.

local buffer_change = require('mcp-tools.editor.edit.change')
local buffers = require('mcp-tools.editor.buffer')
local edit = require('mcp-tools.editor.edit')
local errors = require('mcp-tools.errors')
local preview = require('mcp-tools.editor.edit.preview')
local target = require('mcp-tools.editor.buffer.target')
local undo = require('mcp-tools.editor.buffer.undo')
local text_diff = require('mcp-tools.editor.text.diff')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

--- Calls a function, then scrolls every window of the buffer to the text that it showed before.
---@generic T
---@param bufnr integer
---@param fn fun(): T
---@return T
local function follow_views(bufnr, fn)
  local space = api.nvim_create_namespace('mcp-tools.views')
  local function mark(lnum, col)
    local line = api.nvim_buf_get_lines(bufnr, lnum - 1, lnum, false)[1] or ''
    return api.nvim_buf_set_extmark(bufnr, space, lnum - 1, math.min(col, #line), {})
  end
  local saved = {}
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    local view = api.nvim_win_call(win, vim.fn.winsaveview)
    saved[win] = { view = view, cursor = mark(view.lnum, view.col), top = mark(view.topline, 0) }
  end
  local result = fn()
  for win, entry in pairs(saved) do
    if api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == bufnr then
      local cursor = api.nvim_buf_get_extmark_by_id(bufnr, space, entry.cursor, {})
      local top = api.nvim_buf_get_extmark_by_id(bufnr, space, entry.top, {})
      if cursor[1] and top[1] then
        entry.view.lnum, entry.view.col, entry.view.topline = cursor[1] + 1, cursor[2], top[1] + 1
      end
      api.nvim_win_call(win, function()
        vim.fn.winrestview(entry.view)
      end)
    end
  end
  api.nvim_buf_clear_namespace(bufnr, space, 0, -1)
  return result
end

return {
  name = 'undo_restore',
  title = 'Restore an undo state',
  description = 'Restores a state of the undo tree of a buffer (seq of undo_tree; 0 is the text before the first'
    .. ' change). Nothing is lost: from in the result is the previous state. The file is not written.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    seq = { type = 'integer', description = 'State', required = true, minimum = 0 },
    changedtick = { type = 'integer', description = 'Refuse if the buffer has changed since' },
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
    local before = api.nvim_buf_get_lines(bufnr, 0, -1, false)
    local fault = follow_views(bufnr, function()
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
