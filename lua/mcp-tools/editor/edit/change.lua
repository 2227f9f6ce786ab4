--- One edit of one buffer: applies, undoes and publishes it. Also publishes and deletes files that a call creates.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local history = require('mcp-tools.editor.edit.history')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local text_diff = require('mcp-tools.editor.text.diff')
local garbage = require('mcp-tools.util.garbage')
local highlighting = require('mcp-tools.editor.buffer.highlighting')
local log = require('mcp-tools.log')
local open = require('mcp-tools.editor.buffer.open')
local position = require('mcp-tools.editor.position')
local project = require('mcp-tools.instances.project')
local read = require('mcp-tools.privacy.read')
local text_edits = require('mcp-tools.editor.text.edits')

local api, uv = vim.api, vim.uv

local M = {}

---@class mcp-tools.EditHunk
---@field line integer 1-based line in the new text; for a pure deletion, the line before it
---@field removed integer number of lines
---@field added integer number of lines

---@class mcp-tools.Edited
---@field bufnr integer
---@field path string name of the buffer
---@field changedtick integer afterwards
---@field hunks mcp-tools.EditHunk[] empty if the text was already like that
---@field change integer? id in the history

---@class mcp-tools.EditDone an applied edit that can be undone
---@field bufnr integer
---@field before string[]? nil: nothing has changed
---@field seq integer undo sequence number before
---@field steps integer[]? first and, after `finish`, last undo sequence number of the edit
---@field modified boolean
---@field ends mcp-tools.TextEnds? line endings before, if the edit has changed them
---@field path string? nil until `finish`
---@field after string[]? the new text; after `finish`, with changes by autocommands of the write
---@field changedtick integer? after the edit
---@field is_mixed boolean? the user changed the text before it was written, so the edit cannot be undone alone

--- Error for a buffer that has changed since the client read it.
---@param bufnr integer
---@param changedtick integer of the text that was read
---@return mcp-tools.Error
function M.stale(bufnr, changedtick)
  local text = '%s has changed since it was read (changedtick %d, now %d); read it again'
  return errors.new('stale', text:format(buffers.shown(bufnr), changedtick, api.nvim_buf_get_changedtick(bufnr)))
end

--- Returns why a buffer cannot be edited.
---@param bufnr integer
---@param changedtick integer?
---@return mcp-tools.Error?
function M.refusal(bufnr, changedtick)
  if not api.nvim_buf_is_valid(bufnr) or not api.nvim_buf_is_loaded(bufnr) then
    return errors.new('not_found', ('there is no loaded buffer %d; buffer_list lists them'):format(bufnr))
  end
  local options = vim.bo[bufnr]
  local why = options.buftype == 'terminal' and 'it is a terminal'
    or not options.modifiable and "it is not modifiable ('nomodifiable')"
    or options.readonly and "it is read-only ('readonly')"
  if why then
    return errors.new('tool_error', ('%s cannot be edited: %s'):format(buffers.shown(bufnr), why))
  end
  if changedtick and changedtick ~= api.nvim_buf_get_changedtick(bufnr) then
    return M.stale(bufnr, changedtick)
  end
end

--- Closes the current undo block (`:h undo-break`).
---@param bufnr integer
local function break_undo(bufnr)
  local levels = api.nvim_get_option_value('undolevels', { buf = bufnr })
  api.nvim_set_option_value('undolevels', levels, { buf = bufnr })
end

--- Checks edits and sorts them by position.
---@param bufnr integer
---@param edits mcp-tools.Edit[]
---@param is_exact? boolean a CR is part of the new text
---@return mcp-tools.Replacement[]?
---@return mcp-tools.Error? err
function M.ordered(bufnr, edits, is_exact)
  local count, lines = api.nvim_buf_line_count(bufnr), nil
  for _, edit in ipairs(edits) do
    if not is_exact and edit.text:find('\r\n', 1, true) then -- then every line is checked for a CR
      lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
      break
    end
  end
  local known = position.known()
  return text_edits.ordered(edits, count, function(row)
    return lines and lines[row + 1] or position.line(bufnr, row, known) or ''
  end, is_exact)
end

---@param bufnr integer
---@param list mcp-tools.Replacement[]
---@param prepared? table<integer, mcp-tools.LineSpan[]> differences of each replacement, if already computed
---@return mcp-tools.Replacement[] parts ordered
local function parts_of(bufnr, list, prepared)
  local out = {}
  for i, at in ipairs(list) do
    local old = api.nvim_buf_get_text(bufnr, at.row, at.col, at.end_row, at.end_col, {})
    vim.list_extend(out, text_edits.parts(at, old, prepared and prepared[i]))
  end
  return out
end

---@class mcp-tools.PreparedEdits edits with the expensive comparisons done
---@field tick integer? changedtick of the text
---@field list mcp-tools.Replacement[]? nil: the edits are invalid
---@field spans table<integer, mcp-tools.LineSpan[]> differences of the long replacements

--- Compares long replaced texts in threads, so that `change` does not block the main thread.
---@param work mcp-tools.Task
---@param bufnr integer loaded
---@param edits mcp-tools.Edit[]
---@param ends mcp-tools.TextEnds?
---@return mcp-tools.PreparedEdits
function M.prepare(work, bufnr, edits, ends)
  local prepared = { spans = {} }
  if api.nvim_buf_is_loaded(bufnr) then
    prepared.tick = api.nvim_buf_get_changedtick(bufnr)
    prepared.list = M.ordered(bufnr, edits, ends ~= nil)
  end
  for i, at in ipairs(prepared.list or {}) do
    local is_current = api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_changedtick(bufnr) == prepared.tick
    if is_current and text_diff.is_long(at.end_row - at.row + 1, #at.lines) then
      local old = api.nvim_buf_get_text(bufnr, at.row, at.col, at.end_row, at.end_col, {})
      prepared.spans[i] = work:await(function(done)
        text_diff.spans_async(old, at.lines, done)
      end)
    end
  end
  return prepared
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

--- Returns whether an edit has changed anything.
---@param done mcp-tools.EditDone
---@return boolean
function M.has_changed(done)
  return done.before ~= nil
end

--- Returns whether the text of a loaded buffer has changed since an edit. A write raises changedtick, too.
---@param done mcp-tools.EditDone
---@return boolean
function M.is_overtaken(done)
  local is_loaded = api.nvim_buf_is_loaded(done.bufnr)
  if not is_loaded or not done.changedtick or done.changedtick == api.nvim_buf_get_changedtick(done.bufnr) then
    return false
  end
  return not done.after or not text_diff.are_equal(api.nvim_buf_get_lines(done.bufnr, 0, -1, false), done.after)
end

--- Undoes an edit and keeps the views of windows. A branch of the undo tree remains. Fails if the user has changed the
--- text since.
---@param done mcp-tools.EditDone
---@return boolean ok
function M.undo(done)
  local bufnr = done.bufnr
  if not api.nvim_buf_is_loaded(bufnr) or done.is_mixed or M.is_overtaken(done) then
    return false
  end
  if done.ends then
    set_ends(bufnr, done.ends)
  end
  buffers.keep_views(bufnr, function()
    pcall(api.nvim_buf_call, bufnr, function()
      vim.cmd(('silent undo %d'):format(done.seq))
    end)
    -- Without an undo tree, `:undo` changes nothing.
    if not text_diff.are_equal(api.nvim_buf_get_lines(bufnr, 0, -1, false), done.before) then
      log.guard('undoing an edit', api.nvim_buf_set_lines, bufnr, 0, -1, false, done.before)
    end
  end)
  vim.bo[bufnr].modified = done.modified
  return true
end

---@param done mcp-tools.EditDone
local function note_text(done)
  local is_loaded = api.nvim_buf_is_loaded(done.bufnr)
  done.changedtick = is_loaded and api.nvim_buf_get_changedtick(done.bufnr) or 0
  done.after = done.before and is_loaded and garbage.without(api.nvim_buf_get_lines, done.bufnr, 0, -1, false) or nil
end

--- Applies edits to a buffer, all or none.
---@param bufnr integer
---@param edits mcp-tools.Edit[]
---@param changedtick integer?
---@param opts? { ends: mcp-tools.TextEnds?, prepared: mcp-tools.PreparedEdits?, lines: string[]? } `ends`: line endings
---  to set; a CR is then part of the new text; `prepared`: result of `prepare` for this text; `lines`: the lines at
---  `changedtick`
---@return mcp-tools.EditDone?
---@return mcp-tools.Error? err
function M.change(bufnr, edits, changedtick, opts)
  local ends = opts and opts.ends
  local err = M.refusal(bufnr, changedtick)
  local prepared, list = opts and opts.prepared, nil
  if prepared and prepared.tick ~= (not err and api.nvim_buf_get_changedtick(bufnr)) then
    prepared = nil -- the text has changed since
  end
  if prepared and prepared.list then
    list = prepared.list
  elseif not err then
    list, err = M.ordered(bufnr, edits, ends ~= nil)
  end
  if not list then
    return nil, err
  end
  local parts = parts_of(bufnr, list, prepared and prepared.spans)
  local done = { bufnr = bufnr, seq = 0, modified = vim.bo[bufnr].modified } ---@type mcp-tools.EditDone
  local ends_now = file_text.kept_ends_of(bufnr)
  if ends and not vim.deep_equal(ends, ends_now) then
    done.ends = ends_now
    set_ends(bufnr, ends)
    vim.bo[bufnr].modified = true -- a change of 'endofline' alone does not set it
  end
  if #parts == 0 and not done.ends then
    return done
  end
  done.before = changedtick and opts and opts.lines or api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local tree = vim.fn.undotree(bufnr)
  done.seq, done.steps = tree.seq_cur, { tree.seq_last + 1 }
  local ok, thrown = pcall(function()
    break_undo(bufnr)
    for i = #parts, 1, -1 do
      local at = parts[i]
      api.nvim_buf_set_text(bufnr, at.row, at.col, at.end_row, at.end_col, at.lines)
    end
    local shift = 0
    for _, at in ipairs(parts) do
      local first = at.row + shift
      highlighting.guard(bufnr, first, first + #at.lines)
      shift = shift + #at.lines - (at.end_row - at.row + 1)
    end
    break_undo(bufnr)
  end)
  if not ok then
    M.undo(done)
    local text = '%s cannot be edited now: %s'
    return nil, errors.new('busy', text:format(buffers.shown(bufnr), errors.plain(thrown)))
  end
  note_text(done)
  return done
end

--- Stores the new text in `done`. Changes by autocommands of the write, such as a formatter, are part of the edit.
---@param done mcp-tools.EditDone
function M.finish(done)
  note_text(done)
  done.path = api.nvim_buf_is_valid(done.bufnr) and api.nvim_buf_get_name(done.bufnr) or ''
  if done.steps and api.nvim_buf_is_loaded(done.bufnr) then
    done.steps[2] = vim.fn.undotree(done.bufnr).seq_last
  end
end

--- Adds a change to the history and announces it: `User McpToolsEdit`.
---@param ctx mcp-tools.Ctx?
---@param fields mcp-tools.ChangeFields
---@return integer? id
function M.publish_change(ctx, fields)
  if ctx and ctx.call then
    ctx.call.has_changes = true
  end
  local id = history.note(ctx, fields)
  log.guard('an autocommand for User McpToolsEdit', api.nvim_exec_autocmds, 'User', {
    pattern = 'McpToolsEdit',
    modeline = false,
    data = {
      path = fields.path,
      bufnr = fields.bufnr,
      tool = ctx and ctx.call and ctx.call.name or nil,
      client = ctx and ctx.client or nil,
      host = ctx and ctx.host or nil,
      hunks = fields.hunks,
      change = id,
    },
  })
  return id
end

--- Adds an edit to the history and announces it.
---@param done mcp-tools.EditDone finished
---@param ctx mcp-tools.Ctx?
---@param spans? mcp-tools.LineSpan[] its differences; default: they are computed
---@return mcp-tools.Edited
function M.publish(done, ctx, spans)
  spans = spans or done.after and text_diff.spans(done.before, done.after) or {}
  local edited = { bufnr = done.bufnr, path = done.path, changedtick = done.changedtick, hunks = hunks_of(spans) }
  if #spans > 0 then
    local more = { before = done.before, after = done.after, steps = done.steps }
    edited.change = M.publish_change(ctx, vim.tbl_extend('error', more, edited) --[[@as mcp-tools.ChangeFields]])
  end
  return edited
end

---@param path string
---@return mcp-tools.Error
local function changed_since(path)
  local fault = '%s was changed after it was created, so it is not deleted; delete it yourself if you no longer need it'
  return errors.new('stale', fault:format(access.shown(path, project.root())))
end

--- Checks that the file still has these lines, in its buffer and on disk.
---@param path string
---@param lines string[]
---@param cb fun(err: mcp-tools.Error?)
local function check_created(path, lines, cb)
  local bufnr = buffers.of_path(path)
  if not bufnr then
    return read.read(path, open.MAX_BYTES, function(bytes, err)
      local is_same = bytes and text_diff.are_equal((file_text.lines_of(file_text.decode(bytes))), lines)
      cb(err or not is_same and changed_since(path) or nil)
    end)
  end
  disk.refresh(bufnr, function(state)
    local is_current = api.nvim_buf_is_loaded(bufnr) and (state == 'same' or state == 'reloaded')
    local is_same = is_current and text_diff.are_equal(api.nvim_buf_get_lines(bufnr, 0, -1, false), lines)
    cb(not is_same and changed_since(path) or nil)
  end)
end

--- Cleans up after a file was deleted. A buffer in a window stays, marked as modified.
---@param path string
local function close_buffer(path)
  disk.notify_servers(path, 'Deleted')
  local bufnr = buffers.of_path(path)
  if not bufnr then
    return
  elseif #vim.fn.win_findbuf(bufnr) > 0 then
    vim.bo[bufnr].modified = true
  else
    vim.bo[bufnr].modified = false
    open.drop(bufnr)
  end
end

--- Deletes a file that an agent created, if it still has the text that the agent wrote.
---@param path string resolved
---@param lines string[] as the agent wrote them; for an empty file none, or one empty line
---@param cb fun(err: mcp-tools.Error?) on the main loop
function M.delete_created(path, lines, cb)
  check_created(path, #lines > 0 and lines or { '' }, function(err)
    if err then
      return cb(err)
    end
    uv.fs_unlink(path, function(problem)
      vim.schedule(function()
        if problem then
          local fault = '%s cannot be deleted: %s'
          return cb(errors.new('tool_error', fault:format(access.shown(path, project.root()), problem)))
        end
        close_buffer(path)
        cb()
      end)
    end)
  end)
end

return M
