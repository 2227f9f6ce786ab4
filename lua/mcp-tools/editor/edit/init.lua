--- Edits buffers and files: all or none, in one undo block per buffer.
---
--- Only differing text is replaced, so marks, folds, cursors and views stay with their text.

local access = require('mcp-tools.privacy.access')
local approved = require('mcp-tools.editor.edit.approved')
local autocommands = require('mcp-tools.editor.buffer.autocommands')
local buffer_change = require('mcp-tools.editor.edit.change')
local buffers = require('mcp-tools.editor.buffer')
local client_versions = require('mcp-tools.editor.edit.client_versions')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local history = require('mcp-tools.editor.edit.history')
local hunk_list = require('mcp-tools.editor.text.hunks')
local edit_review = require('mcp-tools.editor.edit.edit_review')
local log = require('mcp-tools.log')
local open = require('mcp-tools.editor.buffer.open')
local project = require('mcp-tools.instances.project')
local read = require('mcp-tools.privacy.read')
local save = require('mcp-tools.editor.buffer.save')
local task = require('mcp-tools.util.task')
local text_diff = require('mcp-tools.editor.text.diff')
local text_edits = require('mcp-tools.editor.text.edits')
local time_slice = require('mcp-tools.util.time_slice')

local api, uv = vim.api, vim.uv

local M = {}

--- Note in a result about an edit that is not on disk.
M.UNSAVED = 'left unsaved: other processes see the old text until it is written (file_save)'

--- Returns why a buffer cannot be edited: not loaded, not modifiable, read-only, or changed since it was read.
M.refusal = buffer_change.refusal

---@class mcp-tools.EditOpts
---@field changedtick integer? of the text that the edits are for
---@field ctx mcp-tools.Ctx? the call that edits; it is recorded in the history

--- Edits one loaded buffer in one undo block, without writing it.
---@param bufnr integer loaded
---@param edits mcp-tools.Edit[]
---@param opts? mcp-tools.EditOpts
---@return mcp-tools.Edited?
---@return mcp-tools.Error? err
function M.apply(bufnr, edits, opts)
  opts = opts or {}
  bufnr = bufnr == 0 and api.nvim_get_current_buf() or bufnr
  local done, err = buffer_change.change(bufnr, edits, opts.changedtick)
  if not done then
    return nil, err
  end
  buffer_change.finish(done)
  return buffer_change.publish(done, opts.ctx)
end

--- Returns the changes that edits of a loaded buffer would make, as a unified diff.
---@param bufnr integer loaded
---@param edits mcp-tools.Edit[]
---@param opts? { changedtick: integer?, root: string?, context: integer? } `root`: for the file name
---@return string?
---@return mcp-tools.Error? err
function M.preview(bufnr, edits, opts)
  opts = opts or {}
  bufnr = bufnr == 0 and api.nvim_get_current_buf() or bufnr
  local err = buffer_change.refusal(bufnr, opts.changedtick)
  if err then
    return nil, err
  end
  local name = buffers.shown(bufnr, opts.root)
  local names = { old = 'a/' .. name, new = 'b/' .. name, context = opts.context }
  return text_edits.unified(api.nvim_buf_get_lines(bufnr, 0, -1, false), edits, names)
end

-- Several files --------------------------------------------------------------------------------------------------

---@class mcp-tools.FileEdits
---@field path string? resolved; the file that may be written. Required without `bufnr`
---@field bufnr integer?
---@field edits mcp-tools.Edit[]
---@field changedtick integer?
---@field lines string[]? the lines at `changedtick`; without it, the edits are stale if the text differs
---@field write boolean? default: `write` of the options
---@field ends mcp-tools.TextEnds? line endings to set

---@class mcp-tools.FileEdited: mcp-tools.Edited
---@field written boolean

---@class mcp-tools.FilesEdited: mcp-tools.ReviewNote the files, with the fields of a review
---@field [integer] mcp-tools.FileEdited

---@class mcp-tools.EditAllOpts
---@field ctx mcp-tools.Ctx?
---@field write boolean? true: all files; false: none; nil: those that were not open

---@class mcp-tools.EditTarget
---@field edits mcp-tools.Edit[]
---@field changedtick integer? of the text that the edits are for
---@field lines string[]? the lines at `changedtick`
---@field bufnr integer
---@field path string? resolved
---@field new boolean whether it was not loaded before
---@field unseen boolean whether only tools use it
---@field write boolean?
---@field ends mcp-tools.TextEnds?
---@field state mcp-tools.DiskState?
---@field prepared mcp-tools.PreparedEdits?
---@field done mcp-tools.EditDone?
---@field version mcp-tools.FileVersion? with the edits and no other changes
---@field written boolean?
---@field is_damaged boolean? only a part was written
---@field bytes string? of the file before it was written, if the user had unsaved changes
---@field gone string? path of a buffer that was closed during review

--- Loads the files that are not loaded and compares them with the disk, one after the other.
---@param work mcp-tools.Task
---@param items mcp-tools.FileEdits[]
---@param ctx mcp-tools.Ctx?
---@param targets mcp-tools.EditTarget[] receives the targets
---@return mcp-tools.Error?
local function gather(work, items, ctx, targets)
  local seen = {}
  for i, item in ipairs(items) do
    local bufnr, err, new = item.bufnr, nil, false
    if not bufnr then
      bufnr, err, new = work:await(function(done)
        open.load(item.path, done, ctx)
      end)
    end
    if not bufnr then
      return err
    elseif seen[bufnr] then
      return errors.new('validation_error', ('%s is listed twice'):format(buffers.shown(bufnr)))
    end
    seen[bufnr] = true
    if ctx then
      open.use(bufnr, ctx)
    end
    local is_valid = api.nvim_buf_is_valid(bufnr)
    local target = {
      edits = item.edits,
      changedtick = item.changedtick,
      lines = item.lines,
      bufnr = bufnr,
      path = item.path or is_valid and access.buffer_path(bufnr) or nil,
      new = new,
      unseen = new or is_valid and buffers.is_unseen(bufnr),
      write = item.write,
      ends = item.ends,
    }
    table.insert(targets, target)
    target.state, err = work:await(function(done)
      disk.refresh(bufnr, done)
    end)
    if err then
      return err
    elseif target.state == 'gone' and target.unseen then -- writing it would create the file again
      open.drop(bufnr, ctx)
      return errors.new('not_found', ('%s was deleted'):format(access.shown(target.path, project.root())))
    end
    if api.nvim_buf_is_loaded(bufnr) then
      local is_unchecked = item.lines and not item.changedtick
      if is_unchecked and not text_diff.are_equal(item.lines, api.nvim_buf_get_lines(bufnr, 0, -1, false)) then
        return errors.new('stale', ('%s has changed since it was read; read it again'):format(buffers.shown(bufnr)))
      end
      target.changedtick = item.changedtick or api.nvim_buf_get_changedtick(bufnr)
    end
    if ctx and #items > 1 then
      ctx:progress(i, #items)
    end
  end
end

--- Restores the file of a buffer. Changes that the user had not saved stay unsaved.
---@param target mcp-tools.EditTarget
---@return string? problem
local function restore(target)
  vim.bo[target.bufnr].modified = true -- otherwise a damaged file would be read again
  if not target.bytes then
    local err = save.now(target.bufnr, { path = target.path, overwrite = true, keep_end = true, as_is = true })
    return err and err.message
  end
  local file, problem = io.open(target.path, 'wb')
  if not file then
    return problem
  end
  local is_written, fault = file:write(target.bytes)
  local is_closed, at_end = file:close()
  if not is_written or not is_closed then
    return fault or at_end
  end
  save.acknowledge(target.bufnr)
  disk.note_read(target.bufnr, uv.fs_stat(target.path))
  vim.bo[target.bufnr].modified = true
end

--- Returns whether a buffer and its file are as the edit has written them. An unmodified buffer whose file has changed
--- is read again.
---@param target mcp-tools.EditTarget
---@return boolean
local function is_as_written(target)
  return disk.check(target.bufnr) == 'same' and access.buffer_path(target.bufnr) == target.path
end

--- Undoes an edit and restores its file, unless the user or another process has changed them since.
---@param target mcp-tools.EditTarget
---@return string? problem why the edit remains
local function undo(target)
  local done, bufnr = target.done, target.bufnr
  local is_loaded = api.nvim_buf_is_loaded(bufnr)
  -- An autocommand may already have written the buffer.
  local is_written = target.written or target.path and is_loaded and not vim.bo[bufnr].modified
  local is_file_changed = is_written or target.is_damaged
  if not done or not buffer_change.has_changed(done) then
    return nil
  elseif not is_loaded then
    return is_file_changed and 'it was closed' or nil
  elseif is_written and not is_as_written(target) or not buffer_change.undo(done) then
    return 'it has changed since'
  end
  local problem = is_file_changed and restore(target)
  if problem then
    vim.bo[bufnr].buflisted = true -- the user has to write it
    return 'the file could not be restored: ' .. problem
  end
end

--- Undoes all edits, restores the files, and unloads what was loaded.
---@param targets mcp-tools.EditTarget[]
---@param ctx mcp-tools.Ctx?
---@param err mcp-tools.Error why the edits are undone
---@return mcp-tools.Error # with what could not be undone
local function undo_all(targets, ctx, err)
  for i = #targets, 1, -1 do
    local target = targets[i]
    local name = target.path and access.shown(target.path, project.root()) or ('buffer %d'):format(target.bufnr)
    local problem = undo(target)
    if problem then
      local text = ('the edit of %s was not undone: %s'):format(name, problem)
      log.error('%s', text)
      -- `stale` would mean that nothing was changed.
      local code = err.code == 'stale' and 'tool_error' or err.code
      err = vim.tbl_extend('force', err, { code = code, message = ('%s; %s'):format(err.message, text) })
    elseif target.is_damaged then
      err = errors.new(err.code, err.message .. '; the file was restored')
    end
    if target.new then
      open.drop(target.bufnr, ctx)
    end
  end
  return err
end

--- Returns whether a file is written. The target's option has precedence.
---@param target mcp-tools.EditTarget
---@param write boolean?
---@return boolean
local function should_write(target, write)
  if target.write ~= nil then
    return target.write
  elseif write ~= nil then
    return write
  end
  return target.unseen
end

---@param target mcp-tools.EditTarget
---@return boolean
local function is_modified(target)
  return api.nvim_buf_is_loaded(target.bufnr) and vim.bo[target.bufnr].modified
end

--- Edits and writes all targets, with pauses between files.
---@param work mcp-tools.Task
---@param targets mcp-tools.EditTarget[]
---@param opts mcp-tools.EditAllOpts
---@return mcp-tools.Error? err
local function change_all(work, targets, opts)
  local pause, to_write = time_slice.of(work), {}
  local function cancelled()
    local is_cancelled = opts.ctx and opts.ctx:cancelled()
    return is_cancelled and errors.new('cancelled', 'cancelled before all files were changed and written') or nil
  end
  for i, target in ipairs(targets) do
    if i > 1 then
      pause()
    end
    local err, is_written = work:await(autocommands.when_over) or cancelled(), should_write(target, opts.write)
    if not err and not target.gone then
      local change = { ends = target.ends, prepared = target.prepared, lines = target.lines }
      err = is_written and target.state == 'conflict' and save.conflict(target.bufnr) or nil
      if not err then
        target.done, err = buffer_change.change(target.bufnr, target.edits, target.changedtick, change)
      end
    end
    if err then
      return err
    end
    target.version = client_versions.version(target)
    if target.done and is_written and buffer_change.has_changed(target.done) then
      table.insert(to_write, target)
    elseif target.done then
      buffer_change.finish(target.done)
    end
  end
  for _, target in ipairs(to_write) do
    pause()
    local done = target.done --[[@as mcp-tools.EditDone]]
    if done.modified and is_modified(target) and target.path then
      target.bytes = work:await(function(read_done)
        read.read(target.path, open.MAX_BYTES, read_done)
      end)
    end
    local err = work:await(autocommands.when_over) or cancelled()
    if err then
      return err
    end
    done.is_mixed = buffer_change.is_overtaken(done)
    target.bytes = is_modified(target) and target.bytes or nil -- nil if an autocommand has written it meanwhile
    err, target.is_damaged = save.now(target.bufnr, { path = target.path, keep_end = target.ends ~= nil })
    local state = not err and disk.check(target.bufnr) -- reads what a command of `BufWritePost` has written
    buffer_change.finish(done)
    if err then
      return err
    end
    local now = client_versions.version(target)
    -- nil after changes by a formatter or the user
    target.version = state == 'same' and client_versions.is_same(target.version, now) and now or nil
    target.written = true
  end
end

--- Returns the item with the current changedtick if it has none.
---@param item mcp-tools.FileEdits
---@param of_path fun(path: string): integer?
---@return mcp-tools.FileEdits
local function with_changedtick(item, of_path)
  local bufnr = item.bufnr or of_path(item.path)
  if not bufnr or not api.nvim_buf_is_valid(bufnr) then
    return item
  end
  local tick = item.changedtick or not item.lines and api.nvim_buf_get_changedtick(bufnr) or nil
  return vim.tbl_extend('force', item, { bufnr = bufnr, changedtick = tick })
end

--- Returns whether to write a buffer after its text was reverted: only tools use it, or the file has the text that is
--- reverted.
---@param bufnr integer before the change
---@return boolean
local function should_write_reverted(bufnr)
  return buffers.is_unseen(bufnr) or not vim.bo[bufnr].modified and not save.refusal(bufnr)
end

--- Reverts hunks of an applied edit that the user has rejected.
---@param bufnr integer
---@param edits mcp-tools.Edit[]
---@param path string
local function revert_edits(bufnr, edits, path)
  if not api.nvim_buf_is_loaded(bufnr) then
    return log.error('%s was closed before its rejected edits could be reverted', path)
  end
  local item = { bufnr = bufnr, edits = edits, write = should_write_reverted(bufnr) }
  M.apply_all({ item }, {}, function(_, err)
    if err then
      log.error('cannot revert rejected edits: %s', err.message)
    end
  end)
end

--- Publishes a file that a call has created, and opens a review if configured.
---@param path string resolved
---@param lines string[]
---@param ctx mcp-tools.Ctx
function M.record_created(path, lines, ctx)
  local hunks = { { line = 1, removed = 0, added = #lines } }
  buffer_change.publish_change(ctx, { path = path, before = {}, after = lines, hunks = hunks, is_new = true })
  if #lines > 0 then
    edit_review.after_new(ctx, path, revert_edits)
  end
end

--- Asks the user to review edits if configured.
---@param work mcp-tools.Task
---@param targets mcp-tools.EditTarget[]
---@param ctx mcp-tools.Ctx?
---@return mcp-tools.ReviewNote?
---@return mcp-tools.Error? err
local function reviewed(work, targets, ctx)
  if not ctx or not edit_review.is_needed(ctx) then
    return {}
  end
  for _, target in ipairs(targets) do
    local err = buffer_change.refusal(target.bufnr, target.changedtick)
    if err then
      return nil, err
    end
  end
  return edit_review.before(work, ctx, targets)
end

--- Edits several files: all or none, except hunks that the user rejects. Files that are not open are loaded into hidden
--- buffers and written. The callback runs on the main loop.
---@param items mcp-tools.FileEdits[]
---@param opts mcp-tools.EditAllOpts?
---@param cb fun(files: mcp-tools.FilesEdited?, err: mcp-tools.Error?)
function M.apply_all(items, opts, cb)
  opts = opts or {}
  local ctx, of_path, targets = opts.ctx, buffers.of_paths(), {}
  items = vim.tbl_map(function(item)
    return with_changedtick(item, of_path)
  end, items)
  local files, err
  local function apply(work)
    err = gather(work, items, ctx, targets)
    if not err then
      files, err = reviewed(work, targets, ctx)
    end
    if err then
      return
    end
    for _, target in ipairs(targets) do
      target.prepared = buffer_change.prepare(work, target.bufnr, target.edits, target.ends)
    end
    if ctx and ctx:cancelled() then
      err = errors.new('cancelled', 'cancelled before anything was changed')
      return
    end
    err = ctx and approved.refusal(work, ctx, targets)
    if err then
      return
    end
    local origins, known = edit_review.origins(ctx, targets), {}
    for i, target in ipairs(ctx and targets or {}) do
      known[i] = client_versions.is_known(ctx, target)
    end
    err = change_all(work, targets, opts)
    if err then
      return
    end
    local spans = {}
    for i, target in ipairs(targets) do
      local done = target.done
      spans[i] = done
        and work:await(function(compared)
          text_diff.spans_async(done.after and done.before or {}, done.after or {}, compared)
        end)
    end
    if ctx and ctx:cancelled() then
      err = errors.new('cancelled', 'cancelled; the edits were undone')
      return
    end
    -- Nothing waits from here on: what is noted is what the call returns.
    for i, target in ipairs(targets) do
      if known[i] and target.version and not (files.edited or target.gone) then
        client_versions.note(ctx, target, target.version)
      end
    end
    for i, target in ipairs(targets) do
      if target.gone then
        files[i] = { bufnr = target.bufnr, path = target.gone, changedtick = 0, hunks = {}, written = false }
      else
        local edited = buffer_change.publish(target.done, ctx, spans[i])
        files[i] = vim.tbl_extend('force', edited, { written = target.written == true })
      end
    end
    if ctx and origins then
      edit_review.after(ctx, origins, revert_edits)
    end
  end
  task.run({}, apply, function(ok, thrown)
    if not ok then
      log.error('an edit failed: %s', thrown)
      err = errors.new('execution_error', 'the edit failed: ' .. tostring(thrown):match('[^\n]*'))
    end
    if not err then
      return cb(files)
    end
    autocommands.when_over(function()
      cb(nil, undo_all(targets, ctx, err))
    end)
  end)
end

---@class mcp-tools.Reverted
---@field hunks integer number of reverted hunks
---@field left integer number of hunks whose lines have changed since
---@field unsaved boolean? the file still has the reverted text

--- Returns the hunks that revert an edit in the current text, without those that have been reverted already.
---@param change mcp-tools.Change
---@param lines string[]
---@param is_partial? boolean lines that were changed again stay; otherwise they are an error
---@return mcp-tools.Hunk[]?
---@return mcp-tools.Error? err
---@return integer left number of hunks that stay
function M.reverse(change, lines, is_partial)
  local fitting, others = {}, {}
  local back = history.reverse_hunks(change, lines)
  for _, hunk in ipairs(back) do
    if not hunk.changed then
      table.insert(fitting, hunk)
    elseif not hunk.is_there then
      table.insert(others, hunk.start)
    end
  end
  local name, fault = access.shown(change.path, project.root()), nil
  if #fitting == 0 and (#others == 0 or change.reverted) then
    fault = ('this change to %s has already been reverted'):format(name)
  elseif #fitting == 0 or #others > 0 and not is_partial then
    local where = table.concat(vim.list_slice(others, 1, 10), ', ')
    fault = '%s changed later near line %s: revert that first'
    fault = fault:format(name, where)
  end
  return not fault and fitting or nil, fault and errors.new('stale', fault) or nil, #back - #fitting
end

---@param change mcp-tools.Change
---@param bufnr integer
---@param cb fun(done: mcp-tools.Reverted?, err: mcp-tools.Error?)
local function revert_in(change, bufnr, cb)
  local hunks, err, left = M.reverse(change, api.nvim_buf_get_lines(bufnr, 0, -1, false), true)
  if not hunks then
    return cb(nil, err)
  end
  local item = { bufnr = bufnr, edits = hunk_list.edits(hunks), changedtick = api.nvim_buf_get_changedtick(bufnr) }
  M.apply_all({ item }, { write = should_write_reverted(bufnr) }, function(files, failed)
    if not files then
      return cb(nil, failed)
    end
    history.note_revert(change)
    cb({ hunks = #hunks, left = left, unsaved = not files[1].written or nil })
  end)
end

--- Reverts an edit of the history as far as its lines are unchanged. Buffers with unsaved changes stay unsaved, other
--- files are written. A file that the edit created is deleted if it has not changed; the caller has asked the user.
---@param change mcp-tools.Change
---@param cb fun(done: mcp-tools.Reverted?, err: mcp-tools.Error?) on the main loop
function M.revert(change, cb)
  if change.is_new then
    return buffer_change.delete_created(change.path, history.after(change), function(err)
      if err then
        return cb(nil, err)
      end
      history.note_revert(change)
      cb({ hunks = #change.hunks, left = 0 })
    end)
  end
  local bufnr = history.buffer(change) or buffers.of_path(change.path)
  if bufnr then
    return revert_in(change, bufnr, cb)
  end
  open.load(change.path, function(loaded, err, new)
    if not loaded then
      return cb(nil, err)
    end
    revert_in(change, loaded, function(...)
      if new then
        open.drop(loaded)
      end
      cb(...)
    end)
  end)
end

return M
