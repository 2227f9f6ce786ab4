--- One edit of one buffer, with the way back.

local buffers = require('mcp-tools.editor.buffer')
local baseline = require('mcp-tools.editor.edit.baseline')
local changes = require('mcp-tools.editor.edit.changes')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local text_diff = require('mcp-tools.editor.text.diff')
local log = require('mcp-tools.log')
local save = require('mcp-tools.editor.buffer.save')
local text_edits = require('mcp-tools.editor.text.edits')
local views = require('mcp-tools.editor.buffer.views')

local api = vim.api

local M = {}

---@class mcp-tools.EditHunk
---@field line integer of the new text, from 1; where nothing was added the line before
---@field removed integer lines
---@field added integer lines

---@class mcp-tools.Edited
---@field bufnr integer
---@field path string name of the buffer
---@field changedtick integer afterwards
---@field hunks mcp-tools.EditHunk[] none when the text was like that already

---@class mcp-tools.EditDone what can be taken back
---@field bufnr integer
---@field before string[]? nil: nothing was changed
---@field seq integer state of the undo tree before
---@field modified boolean
---@field ends mcp-tools.TextEnds? before, where the edit has changed them
---@field path string
---@field after string[]? the text that was made, with what autocommands of the write have changed
---@field changedtick integer of that text

--- A text that has changed since somebody read it.
---@param bufnr integer
---@param changedtick integer that it was read at
---@return mcp-tools.Error
function M.stale(bufnr, changedtick)
  local text = '%s has changed since it was read (changedtick %d, now %d); read it again'
  return errors.new('stale', text:format(buffers.shown(bufnr), changedtick, api.nvim_buf_get_changedtick(bufnr)))
end

--- Why a buffer cannot be edited.
---@param bufnr integer
---@param changedtick integer?
---@return mcp-tools.Error?
function M.refusal(bufnr, changedtick)
  if not api.nvim_buf_is_valid(bufnr) or not api.nvim_buf_is_loaded(bufnr) then
    return errors.new('not_found', ('there is no loaded buffer %d; buffer_list names them'):format(bufnr))
  end
  local options = vim.bo[bufnr]
  if options.buftype == 'terminal' then
    return errors.new('tool_error', ('%s is a terminal; it cannot be edited'):format(buffers.shown(bufnr)))
  elseif not options.modifiable then
    return errors.new(
      'tool_error',
      ("%s cannot be edited: it is not modifiable ('nomodifiable')"):format(buffers.shown(bufnr))
    )
  elseif options.readonly then
    return errors.new('tool_error', ("%s cannot be edited: it is read-only ('readonly')"):format(buffers.shown(bufnr)))
  end
  if changedtick and changedtick ~= api.nvim_buf_get_changedtick(bufnr) then
    return M.stale(bufnr, changedtick)
  end
end

--- Ends the undo block that may be open: `:h undo-break`.
---@param bufnr integer
local function break_undo(bufnr)
  local levels = api.nvim_get_option_value('undolevels', { buf = bufnr })
  api.nvim_set_option_value('undolevels', levels, { buf = bufnr })
end

---@param bufnr integer
---@param row integer
---@return string
local function line_of(bufnr, row)
  return api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
end

--- Edits in the order of the text, with the line breaks of the buffer.
---@param bufnr integer
---@param edits mcp-tools.Edit[]
---@param is_exact? boolean a CR is part of the new text
---@return mcp-tools.Replacement[]?
---@return mcp-tools.Error? err
function M.ordered(bufnr, edits, is_exact)
  local count = api.nvim_buf_line_count(bufnr)
  return text_edits.ordered(edits, count, function(row)
    return line_of(bufnr, row)
  end, is_exact)
end

---@param bufnr integer
---@param list mcp-tools.Replacement[]
---@param known? table<integer, mcp-tools.LineSpan[]> where the text of each differs, as far as it is known
---@return mcp-tools.Replacement[] parts ordered
local function parts_of(bufnr, list, known)
  local out = {}
  for i, at in ipairs(list) do
    local old = api.nvim_buf_get_text(bufnr, at.row, at.col, at.end_row, at.end_col, {})
    vim.list_extend(out, text_edits.parts(at, old, known and known[i]))
  end
  return out
end

---@class mcp-tools.PreparedEdits what is known of edits of a text
---@field tick integer? changedtick of the text
---@field list mcp-tools.Replacement[]? nil: the edits do not fit
---@field spans table<integer, mcp-tools.LineSpan[]> where what the long ones replace differs

--- Compares the long texts that edits of a buffer replace beside the main loop, so that `change` need not.
---@param bufnr integer loaded
---@param edits mcp-tools.Edit[]
---@param ends mcp-tools.TextEnds?
---@param cb fun(known: mcp-tools.PreparedEdits) on the main loop, at once where nothing is long
function M.prepare(bufnr, edits, ends, cb)
  local known, waiting = { spans = {} }, 1
  local function finish()
    waiting = waiting - 1
    if waiting == 0 then
      cb(known)
    end
  end
  if api.nvim_buf_is_loaded(bufnr) then
    known.tick = api.nvim_buf_get_changedtick(bufnr)
    known.list = M.ordered(bufnr, edits, ends ~= nil)
  end
  for i, at in ipairs(known.list or {}) do
    if text_diff.is_long(at.end_row - at.row + 1, #at.lines) then
      waiting = waiting + 1
      local old = api.nvim_buf_get_text(bufnr, at.row, at.col, at.end_row, at.end_col, {})
      text_diff.later(old, at.lines, function(spans)
        known.spans[i] = spans
        finish()
      end)
    end
  end
  finish()
end

---@param spans mcp-tools.LineSpan[]
---@return mcp-tools.EditHunk[]
local function hunks_of(spans)
  return vim.tbl_map(function(span)
    return { line = span[4] > 0 and span[3] or span[3] - 1, removed = span[2], added = span[4] }
  end, spans)
end

---@param bufnr integer
---@param ends mcp-tools.TextEnds
local function set_ends(bufnr, ends)
  vim.bo[bufnr].endofline = ends.last
  vim.bo[bufnr].fileformat = ends.crlf and 'dos' or 'unix'
end

--- Has an edit changed anything?
---@param done mcp-tools.EditDone
---@return boolean
function M.has_changed(done)
  return done.before ~= nil
end

--- Puts a buffer back. What the person sees is as before; of the undo tree a branch is left.
---@param done mcp-tools.EditDone
function M.take_back(done)
  local bufnr = done.bufnr
  if not api.nvim_buf_is_loaded(bufnr) then
    return
  elseif done.ends then
    set_ends(bufnr, done.ends)
  end
  views.keep(bufnr, function()
    pcall(api.nvim_buf_call, bufnr, function()
      vim.cmd(('silent undo %d'):format(done.seq))
    end)
    if not vim.deep_equal(api.nvim_buf_get_lines(bufnr, 0, -1, false), done.before) then -- without an undo tree
      log.guard('taking an edit back', api.nvim_buf_set_lines, bufnr, 0, -1, false, done.before)
    end
  end)
  vim.bo[bufnr].modified = done.modified
end

--- Changes a buffer, or leaves it as it is.
---@param bufnr integer
---@param edits mcp-tools.Edit[]
---@param changedtick integer?
---@param opts? { ends: mcp-tools.TextEnds?, known: mcp-tools.PreparedEdits? } `ends`: how its lines end; then a CR
---  is part of the new text; `known`: of `prepare`, for this text
---@return mcp-tools.EditDone?
---@return mcp-tools.Error? err
function M.change(bufnr, edits, changedtick, opts)
  local ends = opts and opts.ends
  local err = M.refusal(bufnr, changedtick)
  local known, list = opts and opts.known, nil
  if known and known.tick ~= (not err and api.nvim_buf_get_changedtick(bufnr)) then
    known = nil -- the text has changed since
  end
  if known and known.list then
    list = known.list
  elseif not err then
    list, err = M.ordered(bufnr, edits, ends ~= nil)
  end
  if not list then
    return nil, err
  end
  local parts = parts_of(bufnr, list, known and known.spans)
  local done = { bufnr = bufnr, seq = 0, modified = vim.bo[bufnr].modified }
  local ends_now = file_text.kept_ends_of(bufnr)
  if ends and not vim.deep_equal(ends, ends_now) then
    done.ends = ends_now
    set_ends(bufnr, ends)
  end
  if #parts == 0 and not done.ends then
    return done
  end
  done.before = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  done.seq = vim.fn.undotree(bufnr).seq_cur
  if #parts == 0 then
    return done
  end
  local ok, thrown = pcall(function()
    break_undo(bufnr)
    for i = #parts, 1, -1 do
      local at = parts[i]
      api.nvim_buf_set_text(bufnr, at.row, at.col, at.end_row, at.end_col, at.lines)
    end
    break_undo(bufnr)
  end)
  if not ok then
    M.take_back(done)
    local text = '%s cannot be edited now: %s'
    return nil, errors.new('busy', text:format(buffers.shown(bufnr), save.plain(thrown)))
  end
  return done
end

--- Keeps the text that was made. Autocommands of the write, such as a formatter, are part of the edit.
---@param done mcp-tools.EditDone
function M.finish(done)
  local is_loaded = api.nvim_buf_is_loaded(done.bufnr)
  done.path = api.nvim_buf_is_valid(done.bufnr) and api.nvim_buf_get_name(done.bufnr) or ''
  done.changedtick = is_loaded and api.nvim_buf_get_changedtick(done.bufnr) or 0
  done.after = done.before and is_loaded and api.nvim_buf_get_lines(done.bufnr, 0, -1, false) or nil
end

--- Tells others of a change: `User McpToolsEdit`.
---@param path string
---@param bufnr integer? of a file that is open
---@param hunks mcp-tools.EditHunk[]
---@param ctx mcp-tools.Ctx?
---@param id integer? among the changes that are kept
function M.announce(path, bufnr, hunks, ctx, id)
  local ok, thrown = pcall(api.nvim_exec_autocmds, 'User', {
    pattern = 'McpToolsEdit',
    modeline = false,
    data = {
      path = path,
      bufnr = bufnr,
      tool = ctx and ctx.call and ctx.call.name or nil,
      client = ctx and ctx.client or nil,
      hunks = hunks,
      change = id,
    },
  })
  if not ok then
    log.warn('an autocommand for User McpToolsEdit failed: %s', tostring(thrown))
  end
end

--- Remembers the text before, and tells others.
---@param done mcp-tools.EditDone finished
---@param ctx mcp-tools.Ctx?
---@param spans mcp-tools.LineSpan[]
---@return mcp-tools.Edited
local function tell_of(done, ctx, spans)
  local hunks = hunks_of(spans)
  if #spans > 0 then
    baseline.note(ctx and ctx.session, done.bufnr, done.before)
    local noted = { path = done.path, bufnr = done.bufnr, before = done.before, hunks = hunks }
    local id = changes.note(ctx, noted, function(first, count)
      return vim.list_slice(done.after, first, first - 1 + count)
    end)
    M.announce(done.path, done.bufnr, hunks, ctx, id)
  end
  return { bufnr = done.bufnr, path = done.path, changedtick = done.changedtick, hunks = hunks }
end

--- Remembers and tells a change at once.
---@param done mcp-tools.EditDone finished
---@param ctx mcp-tools.Ctx?
---@return mcp-tools.Edited
function M.tell_now(done, ctx)
  return tell_of(done, ctx, done.after and text_diff.spans(done.before, done.after) or {})
end

--- Remembers and tells a change. Long texts are compared beside the main loop.
---@param done mcp-tools.EditDone finished
---@param ctx mcp-tools.Ctx?
---@param cb fun(edited: mcp-tools.Edited) at once where the texts are short
function M.tell(done, ctx, cb)
  text_diff.later(done.after and done.before or {}, done.after or {}, function(spans)
    cb(tell_of(done, ctx, spans))
  end)
end

--- Remembers and tells of a file that was made.
---@param path string
---@param lines string[]
---@param ctx mcp-tools.Ctx?
function M.tell_new(path, lines, ctx)
  local hunks = { { line = 1, removed = 0, added = #lines } }
  local id = changes.note(ctx, { path = path, before = {}, hunks = hunks, is_new = true }, function()
    return lines
  end)
  M.announce(path, nil, hunks, ctx, id)
end

--- Remembers and tells a change that was made in another way.
---@param bufnr integer loaded
---@param before string[] its lines before
---@param ctx mcp-tools.Ctx?
---@param cb fun(edited: mcp-tools.Edited) at once where the texts are short
function M.record(bufnr, before, ctx, cb)
  local done = { bufnr = bufnr, before = before, seq = 0, modified = true }
  M.finish(done)
  M.tell(done, ctx, cb)
end

return M
