--- One edit of one buffer, with the way back.
---
--- Receives: a loaded buffer, edits with positions from 0 (columns in bytes), the changedtick that they are meant for.
--- Sends: what has changed and how to take it back, or why nothing has. `User McpToolsEdit` tells others of it.
--- Does not know about: files that are not open, several edits that belong together (editor/edit/init.lua).

local buffers = require('mcp-tools.editor.buffer')
local baseline = require('mcp-tools.editor.edit.baseline')
local changes = require('mcp-tools.editor.edit.changes')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local line_diff = require('mcp-tools.editor.edit.line_diff')
local log = require('mcp-tools.log')
local save = require('mcp-tools.editor.buffer.save')
local text_edits = require('mcp-tools.editor.edit.text_edits')
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
---@field before string[]
---@field seq integer state of the undo tree before
---@field modified boolean
---@field hunks mcp-tools.EditHunk[]
---@field ends mcp-tools.TextEnds? before, where the edit has changed them

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
  local function row_of(row)
    return line_of(bufnr, row)
  end
  edits = is_exact and edits or text_edits.with_line_breaks(edits, count, row_of)
  return text_edits.ordered(edits, count, row_of)
end

---@param bufnr integer
---@param list mcp-tools.Replacement[]
---@return mcp-tools.Replacement[] parts ordered
local function parts_of(bufnr, list)
  local out = {}
  for _, at in ipairs(list) do
    local old = api.nvim_buf_get_text(bufnr, at.row, at.col, at.end_row, at.end_col, {})
    vim.list_extend(out, text_edits.parts(at, old))
  end
  return out
end

--- What has changed, line by line.
---@param done mcp-tools.EditDone whose buffer has the new text
---@param parts mcp-tools.Replacement[] ordered, in places of the text before
---@return mcp-tools.EditHunk[]
local function hunks_of(done, parts)
  local before, first, last = done.before, parts[1].row, parts[#parts].end_row
  local grown = api.nvim_buf_line_count(done.bufnr) - #before
  local old = table.concat(before, '\n', first + 1, last + 1) .. '\n'
  local new = table.concat(api.nvim_buf_get_lines(done.bufnr, first, last + 1 + grown, false), '\n') .. '\n'
  local hunks = {}
  for i, hunk in ipairs(line_diff.of(old, new, { result_type = 'indices' })) do
    hunks[i] = { line = first + hunk[3], removed = hunk[2], added = hunk[4] }
  end
  return hunks
end

--- The lines between which all changes are, with one around them; not all of a long text is compared.
---@param before string[]
---@param now string[]
---@return integer? row from 0; nil: nothing has changed
---@return integer? end_row
local function span_of(before, now)
  local first, last = text_edits.same_lines(before, now)
  if first == #before and first == #now then
    return nil
  end
  return math.max(first - 1, 0), math.min(#before - last, #before - 1)
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
  return #done.hunks > 0 or done.ends ~= nil
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
---@param ends? mcp-tools.TextEnds how its lines are to end; then a CR is part of the new text
---@return mcp-tools.EditDone?
---@return mcp-tools.Error? err
function M.change(bufnr, edits, changedtick, ends)
  local err = M.refusal(bufnr, changedtick)
  local list
  if not err then
    list, err = M.ordered(bufnr, edits, ends ~= nil)
  end
  if not list then
    return nil, err
  end
  local parts = parts_of(bufnr, list)
  local done = { bufnr = bufnr, before = {}, seq = 0, modified = vim.bo[bufnr].modified, hunks = {} }
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
  done.hunks = hunks_of(done, parts)
  return done
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
---@param done mcp-tools.EditDone
---@param ctx mcp-tools.Ctx?
function M.tell(done, ctx)
  if #done.hunks > 0 then
    local path = api.nvim_buf_get_name(done.bufnr)
    baseline.note(ctx and ctx.session, done.bufnr, done.before)
    local noted = { path = path, bufnr = done.bufnr, before = done.before, hunks = done.hunks }
    local id = changes.note(ctx, noted, function(first, count)
      return api.nvim_buf_get_lines(done.bufnr, first - 1, first - 1 + count, false)
    end)
    M.announce(path, done.bufnr, done.hunks, ctx, id)
  end
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

--- Where a text that was changed differs from what it was before.
---@param done mcp-tools.EditDone
---@return mcp-tools.EditHunk[]
local function differences(done)
  local row, end_row = span_of(done.before, api.nvim_buf_get_lines(done.bufnr, 0, -1, false))
  return row and hunks_of(done, { { row = row, col = 0, end_row = end_row, end_col = 0, lines = {} } }) or {}
end

--- Takes in what autocommands of the write have changed, such as a formatter: it is part of the edit.
---@param done mcp-tools.EditDone whose buffer was written
function M.include_write(done)
  if api.nvim_buf_is_loaded(done.bufnr) then
    done.hunks = differences(done)
  end
end

--- Remembers and tells a change that was made in another way.
---@param bufnr integer loaded
---@param before string[] its lines before
---@param ctx mcp-tools.Ctx?
---@return mcp-tools.EditHunk[]
function M.record(bufnr, before, ctx)
  local done = { bufnr = bufnr, before = before, seq = 0, modified = true, hunks = {} }
  done.hunks = differences(done)
  M.tell(done, ctx)
  return done.hunks
end

---@param done mcp-tools.EditDone
---@return mcp-tools.Edited
function M.result_of(done)
  return {
    bufnr = done.bufnr,
    path = api.nvim_buf_get_name(done.bufnr),
    changedtick = api.nvim_buf_get_changedtick(done.bufnr),
    hunks = done.hunks,
  }
end

return M
