--- Edits one or several files.

local after_edit = require('mcp-tools.editor.diagnostics.after_edit')
local answer = require('mcp-tools.editor.diagnostics.edit_answer')
local arguments = require('mcp-tools.editor.arguments')
local buffers = require('mcp-tools.editor.buffer')
local client_versions = require('mcp-tools.editor.edit.client_versions')
local create = require('mcp-tools.editor.edit.create')
local edit = require('mcp-tools.editor.edit')
local edit_review = require('mcp-tools.editor.edit.edit_review')
local errors = require('mcp-tools.errors')
local patches = require('mcp-tools.editor.text.patch')
local preview = require('mcp-tools.editor.edit.preview')
local search_edits = require('mcp-tools.editor.text.search_replace')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')

--- Maximum length of a text in which similar places are searched synchronously, in lines.
local MAX_LINES = 1000
--- Number of attempts while others change the text.
local TRIES = 100
--- Maximum number of files.
local MAX_FILES = 100

local DISK = { conflict = 'changed by others', gone = 'deleted' }

--- The edits of one file.
---@class mcp-tools.EditGroup
---@field path string? as given
---@field bufnr integer?
---@field index integer of the first edit in the call, from 1
---@field edits table[]
---@field hunks mcp-tools.PatchHunk[]? of a patch
---@field is_new boolean? the file is created
---@field is_open boolean the user has it open, so it is not written
---@field is_modified boolean

---@param index integer
---@param text string
---@return mcp-tools.Error
local function fault(index, text)
  local field = ('edits[%d]'):format(index - 1)
  return errors.new('validation_error', ('%s: %s'):format(field, text), { { field = field, message = text } })
end

--- Fields of one edit.
local EDIT = {
  path = { type = 'string', description = 'File' },
  old_text = { type = 'string', description = 'Exact text to replace, unique in the file' },
  new_text = { type = 'string', description = 'Replacement; empty deletes' },
  start_line = { type = 'integer', description = 'First line to replace, instead of old_text', minimum = 1 },
  end_line = { type = 'integer', description = 'Last line; start_line - 1 inserts before start_line', minimum = 0 },
  replace_all = { type = 'boolean', description = 'Replace every occurrence' },
  bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
}

--- Converts a patch, and the form of other agents' tools for one edit, to `edits`.
---@param args table not checked yet
---@return table? args
---@return mcp-tools.Error? err
local function prepare(args)
  for name, value in pairs(args) do
    if value == vim.NIL then
      args[name] = nil
    end
  end
  if args.patch == '' or type(args.edits) == 'table' and not next(args.edits) and args.patch then
    args[args.patch == '' and 'patch' or 'edits'] = nil
  end
  if args.patch ~= nil and args.edits ~= nil then
    return nil, errors.new('validation_error', 'patch: cannot be combined with edits')
  elseif type(args.patch) == 'string' then
    local files, err = patches.parse(args.patch)
    if not files then
      return nil, err
    end
    args.edits = {}
    for i, file in ipairs(files) do
      local text = file.new and patches.new_text(file) or nil
      args.edits[i] = { path = file.path, new_text = text, hunks = not file.new and file.hunks or nil }
    end
    args.patch = nil
  elseif args.edits == nil and type(args.new_text) == 'string' then
    local one = {}
    for name in pairs(EDIT) do
      one[name], args[name] = args[name], nil
    end
    args.edits = { one }
  end
  return args
end

--- Returns the edits of each file, in the order of the call.
---@param args table
---@return mcp-tools.EditGroup[]?
---@return mcp-tools.Error? err
local function groups_of(args)
  if not args.edits then
    return nil, errors.new('validation_error', 'edits: is missing; give edits or patch')
  end
  local groups, by_place = {}, {}
  for i, one in ipairs(args.edits) do
    local path, bufnr = one.path, one.bufnr
    if not path and not bufnr then
      path, bufnr = args.path, args.bufnr
    end
    local found, err = buffers.find({ path = path, bufnr = bufnr })
    if not found then
      return nil, err.code == 'validation_error' and fault(i, 'path: which file?') or err
    end
    local key = found.bufnr or found.path
    local group = by_place[key]
    if not group then
      local is_open = found.bufnr ~= nil and not buffers.is_unseen(found.bufnr)
      local is_modified = found.bufnr ~= nil and vim.bo[found.bufnr].modified
      group = { path = path, bufnr = bufnr, index = i, edits = {}, is_open = is_open, is_modified = is_modified }
      by_place[key] = group
      table.insert(groups, group)
    end
    local exists = found.bufnr or vim.uv.fs_lstat(found.path)
    if group.hunks or group.is_new or one.hunks and #group.edits > 0 then
      return nil, fault(i, 'the file occurs twice')
    elseif one.hunks then
      group.hunks = one.hunks
    elseif not one.new_text then
      return nil, fault(i, 'new_text: is missing')
    elseif not exists and (one.old_text or '') == '' and not one.start_line then
      group.is_new = true
    elseif exists and not one.old_text and not one.start_line then
      return nil, fault(i, 'give either old_text, or start_line and end_line; the file exists')
    elseif one.old_text == '' then
      return nil, fault(i, 'old_text: must not be empty; the file exists')
    end
    table.insert(group.edits, vim.tbl_extend('force', one, { index = i }))
  end
  if #groups > MAX_FILES then
    return nil, errors.new('validation_error', ('edits: at most %d files'):format(MAX_FILES))
  end
  return groups
end

---@param group mcp-tools.EditGroup
---@return boolean
local function has_line_numbers(group)
  return vim.iter(group.edits):any(function(one)
    return one.start_line ~= nil
  end)
end

--- Returns the edits of a group for the current text.
---@param lines string[]
---@param group mcp-tools.EditGroup
---@param opts { pause: fun()?, brief: boolean? }
---@return mcp-tools.Edit[]?
---@return mcp-tools.Error? err
local function edits_of(lines, group, opts)
  if group.hunks then
    local edits, err = patches.edits(lines, group.hunks, opts.pause)
    return edits, err and errors.new(err.code, ('%s: %s'):format(group.path, err.message)) or nil
  end
  return search_edits.edits(lines, group.edits, opts)
end

--- Returns why edits by line number cannot be made: the client does not know the current text.
---@param client mcp-tools.Ctx|mcp-tools.Call
---@param group mcp-tools.EditGroup
---@param found { path: string?, bufnr: integer?, shown: string? } `path`: resolved
---@return mcp-tools.Error?
local function unread(client, group, found)
  if has_line_numbers(group) and not client_versions.is_known(client, found) then
    local text = 'start_line: %s has changed since you read it, or you have not; read it with file_read'
    return errors.new('stale', text:format(found.shown or group.path))
  end
end

--- Returns what is to be done in one file.
---@param ctx mcp-tools.Ctx
---@param group mcp-tools.EditGroup
---@return mcp-tools.FileEdits?
---@return mcp-tools.Error? err
---@return mcp-tools.Target? found
local function item_of(ctx, group)
  local found, err = target.await(ctx, { path = group.path, bufnr = group.bufnr }, { load = true })
  if not found then
    return nil, err
  end
  local bufnr = found.bufnr
  err = edit.refusal(bufnr) or unread(ctx, group, found)
  if err then
    return nil, err
  end
  local tick = vim.api.nvim_buf_get_changedtick(bufnr)
  local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local edits
  edits, err = edits_of(lines, group, { pause = time_slice.of(ctx) })
  if not edits then
    return nil, err
  end
  local item = { path = found.path, bufnr = bufnr, edits = edits, changedtick = tick, lines = lines }
  item.write = not group.is_open
  return item, nil, found
end

--- Edits the files that exist.
---@param ctx mcp-tools.Ctx
---@param groups mcp-tools.EditGroup[]
---@param save boolean?
---@return mcp-tools.FilesEdited?
---@return mcp-tools.Error? err
---@return table<integer, table> more fields of the files
---@return boolean? overtaken a text has changed in the meantime, and the edits can be made again without a review
local function attempt(ctx, groups, save)
  local items, more, is_free = {}, {}, not edit_review.is_needed(ctx)
  for i, group in ipairs(groups) do
    local item, err, found = item_of(ctx, group)
    if not item then
      return nil, err, more
    end
    item.write = item.write or save == true
    items[i], more[i] = item, { disk = DISK[found.state] }
    is_free = is_free and not has_line_numbers(group)
  end
  if #items == 0 then
    return {}, nil, more
  end
  local files, err = ctx:await(function(done)
    edit.apply_all(items, { ctx = ctx }, done)
  end)
  local function has_changed(item)
    return edit.refusal(item.bufnr, item.changedtick) ~= nil
  end
  return files, err, more, is_free and err and err.code == 'stale' and vim.iter(items):any(has_changed)
end

--- Creates the new files.
---@param ctx mcp-tools.Ctx
---@param groups mcp-tools.EditGroup[]
---@param made mcp-tools.CreatedFile[] receives those that were created
---@return mcp-tools.Error? err
local function create_all(ctx, groups, made)
  for _, group in ipairs(groups) do
    local found, err = target.await(ctx, { path = group.path }, {})
    local one
    if found then
      one, err = create.file(ctx, found.path, group.edits[1].new_text)
    end
    if not one then
      return err
    end
    table.insert(made, one)
  end
end

---@param args table
---@param again fun()?
---@param call mcp-tools.Call
---@return string?
---@return mcp-tools.Error? err
local function preview_all(args, again, call)
  return preview.of_all(errors.unwrap(groups_of(args)), function(group)
    if group.is_new then
      return preview.of_new(group.path, group.edits[1].new_text)
    end
    local found = call and buffers.find({ path = group.path, bufnr = group.bufnr })
    local refusal = found and unread(call, group, found)
    errors.check(refusal)
    return preview.of({ path = group.path, bufnr = group.bufnr }, function(lines)
      local is_quick = group.hunks and patches.is_quick(lines, group.hunks)
      if not is_quick and (group.hunks or not search_edits.is_quick(lines, group.edits)) then
        return nil, nil, 'the text is too large'
      end
      return edits_of(lines, group, { brief = #lines > MAX_LINES })
    end, { again = again, is_written = args.save and group.is_open })
  end)
end

--- Hunks of a patch, as `patches.parse` returns them.
local HUNKS = {
  type = 'array',
  description = 'Hunks of a patch',
  hidden = true,
  items = {
    type = 'object',
    properties = {
      line = { type = 'integer', description = 'First line', minimum = 0 },
      after = { type = 'array', items = { type = 'string' }, maxItems = 10, description = 'Lines before it' },
      at_end = { type = 'boolean', description = 'It is at the end of the file' },
      rows = { type = 'array', items = { type = 'string' }, description = 'Rows', required = true },
    },
  },
}

return {
  name = 'file_edit',
  title = 'Edit files',
  description = 'Replaces text in one or several files, all or nothing, as one undo step each. Works on files with'
    .. ' unsaved changes. A closed file is written; an open one stays unsaved unless `save` is true. Returns the'
    .. ' changed lines and new diagnostics.',
  search_hint = 'change, modify, patch, replace lines, str_replace, apply_patch, diff',
  args = vim.tbl_extend('error', vim.tbl_map(arguments.hidden, EDIT), {
    edits = {
      type = 'array',
      description = 'Line numbers refer to the text before the call',
      minItems = 1,
      maxItems = 500,
      items = {
        type = 'object',
        properties = vim.tbl_extend('error', EDIT, {
          hunks = HUNKS,
        }),
      },
    },
    patch = { type = 'string', description = 'A unified diff or apply_patch text, instead of edits' },
    save = { type = 'boolean', description = 'Write open files as well' },
    diagnostics = after_edit.ARG,
  }),
  prepare = prepare,
  annotations = { read_only = false, destructive = true, idempotent = false },
  recommended = true,
  always_load = true,
  needs_approval = 'it changes text',
  reviewed = function(args)
    -- The review does not show the unsaved changes that `save` writes as well.
    return not args.save
      or not vim.iter(errors.unwrap(groups_of(args))):any(function(group)
        return group.is_modified
      end)
  end,
  previewed = { 'edits' },
  preview = preview_all,
  run = function(ctx, args)
    local groups = errors.unwrap(groups_of(args))
    local new, existing = {}, {}
    for _, group in ipairs(groups) do
      table.insert(group.is_new and new or existing, group)
    end
    for _, group in ipairs(#new > 0 and existing or {}) do -- before anything is created
      errors.unwrap(item_of(ctx, group))
    end
    local files, more
    local made = {}
    ctx:on_cancel(function()
      if not files then
        create.remove(made, function() end)
      end
    end)
    local err = create_all(ctx, new, made)
    for _ = 1, err and 0 or TRIES do
      local overtaken
      files, err, more, overtaken = attempt(ctx, existing, args.save)
      if not overtaken then
        break
      end
    end
    if not files then
      ctx:await(function(done)
        create.remove(made, done)
      end)
      return nil, err
    end
    for _, one in ipairs(made) do
      create.record(ctx, one)
      files.edited = files.edited or one.note.edited
    end
    return answer.of(ctx, args, files, { more = more, created = made })
  end,
  render = answer.text,
}
