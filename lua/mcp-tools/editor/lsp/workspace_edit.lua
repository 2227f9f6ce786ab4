--- Converts a `WorkspaceEdit` of a language server to edits of files, and previews, applies or reverts them.

local access = require('mcp-tools.privacy.access')
local approved = require('mcp-tools.editor.edit.approved')
local edit = require('mcp-tools.editor.edit')
local errors = require('mcp-tools.errors')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.position')
local result = require('mcp-tools.editor.result')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

local INVALID = 'the server returned an invalid edit; nothing was changed'

--- Maximum number of files in one edit.
local MAX_FILES = 1000
--- Maximum size of a preview, bytes.
local MAX_PREVIEW = 200000
--- Maximum size of a diff, bytes, and number of files in one answer.
local MAX_DIFF, MAX_LISTED = 16000, 60

---@class mcp-tools.lsp.FileChange
---@field bufnr integer
---@field path string as shown
---@field resolved string path without links
---@field edits mcp-tools.Edit[]
---@field changedtick integer
---@field write boolean save it after the edit, because the user has not opened it
---@field before string[]

---@class mcp-tools.lsp.Plan
---@field files mcp-tools.lsp.FileChange[] by path
---@field count integer places

--- Returns the text edits by URI.
---@param change lsp.WorkspaceEdit
---@return table<string, { edits: table[], version: integer? }>? by_uri
---@return mcp-tools.Error? err
local function by_uri(change)
  local found, is_invalid = {}, false
  local function add(document, edits)
    if type(document) ~= 'table' or type(document.uri) ~= 'string' or type(edits) ~= 'table' then
      is_invalid = true
      return
    end
    local uri = document.uri
    if uri:find('^file:') then -- a URI has several spellings
      uri = vim.uri_from_fname(paths.resolve(vim.uri_to_fname(uri)))
    end
    found[uri] = found[uri] or { edits = {}, version = document.version }
    vim.list_extend(found[uri].edits, edits)
  end
  local changes = type(change.documentChanges) == 'table' and change.documentChanges or nil
  for _, item in ipairs(changes or {}) do
    local each = (type(item) == 'table' and item or {}) --[[@as table]]
    if type(each.kind) == 'string' then
      local text = 'the server also wants to %s a file (%s), which this tool does not do; use file_move or file_write'
      local where = each.newUri or each.uri
      if type(where) ~= 'string' then
        return nil, errors.new('tool_error', INVALID)
      end
      where = where:find('^file:') and vim.uri_to_fname(where) or where
      return nil, errors.new('tool_error', text:format(each.kind, where))
    end
    add(each.textDocument, each.edits)
  end
  for uri, edits in pairs(not changes and type(change.changes) == 'table' and change.changes or {}) do
    add({ uri = uri }, edits)
  end
  if is_invalid then
    return nil, errors.new('tool_error', INVALID)
  end
  for uri, each in pairs(found) do
    if #each.edits == 0 then -- some servers also list files that do not change
      found[uri] = nil
    end
  end
  return found
end

---@param ctx mcp-tools.Ctx
---@param path string resolved
---@return integer? bufnr
---@return mcp-tools.Error? err
local function loaded(ctx, path)
  local refused, why = target.path_refusal(ctx, path)
  if refused then
    local text = '%s would be changed as well, but it is %s; nothing was changed'
    return nil, errors.new('access_denied', text:format(access.shown(path, ctx.root), why))
  end
  local found, err = target.await(ctx, { path = path }, { load = true })
  if found and found.state == 'conflict' then
    local text = '%s was changed on disk and has unsaved changes; nothing was changed'
    return nil, errors.new('stale', text:format(found.shown))
  end
  return found and found.bufnr, err
end

--- Converts text edits of a server.
---@param lines string[]
---@param list lsp.TextEdit[]
---@param encoding mcp-tools.lsp.Encoding
---@param pause fun()
---@return mcp-tools.Edit[]?
---@return mcp-tools.Error? err
local function edits_of(lines, list, encoding, pause)
  local known = position.known()
  local function at(point)
    if point.line >= #lines then
      return #lines, 0 -- the end of the text
    end
    return point.line, position.byte(lines[point.line + 1] or '', point.character, encoding, known)
  end
  local edits = {}
  for i, each in ipairs(list) do
    if type(each) ~= 'table' or not position.is_range(each.range) or type(each.newText) ~= 'string' then
      return nil, errors.new('tool_error', INVALID)
    end
    local start_line, start_col = at(each.range.start)
    local end_line, end_col = at(each.range['end'])
    local text = each.newText:gsub('\r\n', '\n')
    edits[i] = { start_line = start_line, start_col = start_col, end_line = end_line, end_col = end_col, text = text }
    pause()
  end
  return edits
end

--- Plans an edit. Its files are loaded and up to date with the disk.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param change lsp.WorkspaceEdit
---@param client vim.lsp.Client
---@return mcp-tools.lsp.Plan? plan
---@return mcp-tools.Error? err
function M.plan(ctx, change, client)
  local files, err = by_uri(change)
  if not files then
    return nil, err
  elseif vim.tbl_count(files) > MAX_FILES then
    local text = ('it would change %d files; the maximum is %d'):format(vim.tbl_count(files), MAX_FILES)
    return nil, errors.new('too_large', text)
  end
  local plan, pause = { files = {}, count = 0 }, time_slice.of(ctx)
  for uri, each in vim.spairs(files) do
    if not uri:find('^file:') then
      local text = 'the server wants to change %s, which is not a file'
      return nil, errors.new('tool_error', text:format(access.name(uri)))
    end
    local path = paths.resolve(vim.uri_to_fname(uri))
    local bufnr
    bufnr, err = loaded(ctx, path)
    if not bufnr then
      return nil, err
    end
    local version = type(each.version) == 'number' and each.version or nil
    local newest = vim.lsp.util.buf_versions[bufnr]
    if version and newest and version > 0 and version < newest then
      local text = '%s has changed since the server was asked; ask again'
      return nil, errors.new('stale', text:format(access.shown(path, ctx.root)))
    end
    local changedtick = vim.api.nvim_buf_get_changedtick(bufnr)
    local before = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
    local edits
    edits, err = edits_of(before, each.edits, client.offset_encoding, pause)
    if not edits then
      return nil, err
    elseif not vim.api.nvim_buf_is_loaded(bufnr) then
      return nil, errors.new('stale', access.shown(path, ctx.root) .. ' was closed')
    end
    plan.count = plan.count + #edits
    table.insert(plan.files, {
      bufnr = bufnr,
      path = access.shown(path, ctx.root),
      resolved = path,
      edits = edits,
      changedtick = changedtick,
      write = not vim.bo[bufnr].buflisted and #vim.fn.win_findbuf(bufnr) == 0 and not vim.bo[bufnr].modified,
      before = before,
    })
  end
  return plan
end

--- Returns the first lines of a diff.
---@param diff string
---@param bytes integer
---@return string
local function cut(diff, bytes)
  if #diff <= bytes then
    return diff
  end
  local kept = diff:sub(1, bytes):match('^.*\n') or ''
  local _, left = diff:sub(#kept + 1):gsub('\n', '')
  return ('%s… and %d more lines\n'):format(kept, left)
end

--- Returns a unified diff of all files.
---@param plan mcp-tools.lsp.Plan
---@param ctx mcp-tools.Ctx inside a coroutine
---@return string
function M.preview(plan, ctx)
  local parts, size, pause = {}, 0, time_slice.of(ctx)
  for _, file in ipairs(plan.files) do
    pause()
    if size > MAX_PREVIEW then
      table.insert(parts, approved.not_shown(file.path, 'the change is too large.'))
    else
      local text, err = edit.preview(file.bufnr, file.edits, { root = ctx.root })
      text = text or approved.not_shown(file.path, err.message)
      table.insert(parts, cut(text, MAX_PREVIEW - size))
      size = size + #text
    end
  end
  return table.concat(parts)
end

--- Applies a plan atomically. Files that the user has open are not written to disk.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param plan mcp-tools.lsp.Plan
---@return mcp-tools.FilesEdited? files ordered as the plan
---@return mcp-tools.Error? err
function M.apply(ctx, plan)
  local items = {}
  for i, file in ipairs(plan.files) do
    items[i] = { bufnr = file.bufnr, edits = file.edits, changedtick = file.changedtick, write = file.write or nil }
  end
  return ctx:await(function(done)
    edit.apply_all(items, { ctx = ctx }, done)
  end)
end

--- Reverts an applied plan, even after the call has ended. `cb` runs on the main loop, perhaps before this returns.
---@param plan mcp-tools.lsp.Plan
---@param files mcp-tools.FilesEdited result of `apply`; refused if a file has changed since
---@param cb fun(err: mcp-tools.Error?)
function M.revert(plan, files, cb)
  local items = {}
  for i, file in ipairs(plan.files) do
    if not vim.api.nvim_buf_is_loaded(file.bufnr) then
      return cb(errors.new('stale', file.path .. ' was closed'))
    end
    local last = vim.api.nvim_buf_line_count(file.bufnr) - 1
    local text = vim.api.nvim_buf_get_lines(file.bufnr, last, last + 1, false)[1] or ''
    items[i] = {
      bufnr = file.bufnr,
      changedtick = files[i].changedtick,
      write = file.write,
      edits = {
        {
          start_line = 0,
          start_col = 0,
          end_line = last,
          end_col = #text,
          text = table.concat(file.before, '\n'),
        },
      },
    }
  end
  edit.apply_all(items, {}, function(_, err)
    cb(err)
  end)
end

--- Whether the user changed or rejected a part in a review.
---@param files mcp-tools.FilesEdited
---@return boolean
local function changed_in_review(files)
  return files.rejected ~= nil or files.edited == true
end

--- Returns the files for an answer, each with its number of places, or of `applied` hunks after the user has changed or
--- rejected something in a review.
---@param plan mcp-tools.lsp.Plan
---@param files? mcp-tools.FilesEdited
---@return table[]
function M.summary(plan, files)
  local list = {}
  for i, file in ipairs(plan.files) do
    local one = { path = file.path, places = #file.edits, unsaved = files and not files[i].written or nil }
    if files and changed_in_review(files) then
      one.places, one.applied = nil, #files[i].hunks
      one.unsaved = one.applied > 0 and one.unsaved or nil
    end
    list[i] = one
  end
  return list
end

--- Limits the diff and the list of files of an answer.
---@param answer table
---@return table answer
function M.bounded(answer)
  local files = answer.files
  for _, file in ipairs(files or {}) do
    answer.note = file.unsaved and edit.UNSAVED or answer.note
  end
  answer.diff = answer.diff and cut(answer.diff, MAX_DIFF)
  if files and #files > MAX_LISTED then
    answer.files, answer.more_files = vim.list_slice(files, 1, MAX_LISTED), #files - MAX_LISTED
  end
  return answer
end

--- Returns an answer as text: a row for each file, and notes.
---@param answer table of `bounded`
---@param head string
---@return string
function M.text(answer, head)
  local rows = { head }
  if answer.places then
    local files = #(answer.files or {}) + (answer.more_files or 0)
    local count = result.count(answer.places, 'place')
    rows[1] = ('%s: %s%s'):format(head, count, files > 0 and ' in ' .. result.count(files, 'file') or '')
  end
  for _, file in ipairs(answer.files or {}) do
    local count = result.count(file.places or file.applied, file.places and 'place' or 'accepted hunk')
    table.insert(rows, ('%s: %s%s'):format(file.path, count, file.unsaved and ', unsaved' or ''))
  end
  if answer.more_files then
    table.insert(rows, ('and %s'):format(result.count(answer.more_files, 'more file')))
  end
  result.add_review(rows, answer)
  for _, each in ipairs({ answer.failed or false, answer.note or false, answer.diff or false }) do
    if each then
      table.insert(rows, each)
    end
  end
  return table.concat(rows, '\n')
end

--- Applies a plan, or previews it, and adds the result to an answer.
---@param ctx mcp-tools.Ctx
---@param plan mcp-tools.lsp.Plan
---@param answer table gets `files` and, unless the user has changed something in a review, `places`
---@param dry_run boolean only preview
---@return mcp-tools.Error? err
function M.apply_or_preview(ctx, plan, answer, dry_run)
  local files, err
  if dry_run then
    answer.diff = (answer.diff or '') .. M.preview(plan, ctx)
  else
    files, err = M.apply(ctx, plan)
    if not files then
      return err
    end
    answer.rejected, answer.edited_by_user = files.rejected, files.edited
  end
  vim.list_extend(answer.files, M.summary(plan, files))
  answer.places = not (files and changed_in_review(files)) and (answer.places or 0) + plan.count or nil
end

--- Plans an edit, applies or previews it, and adds the result to an answer.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param change table WorkspaceEdit
---@param answer table gets `files` and `places`
---@param dry_run boolean
---@param diff? string that was shown for approval
---@return mcp-tools.Error? err
function M.plan_and_apply(ctx, client, change, answer, dry_run, diff)
  local plan, err = M.plan(ctx, change, client)
  if not plan then
    return err
  elseif diff and not dry_run and M.preview(plan, ctx) ~= diff then
    return errors.new('stale', 'apply: the change differs from the diff that was shown; list the actions again')
  end
  return M.apply_or_preview(ctx, plan, answer, dry_run)
end

return M
