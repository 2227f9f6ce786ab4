--- Reverts edits, as edits of the current text: what was changed later stays.

local access = require('mcp-tools.privacy.access')
local after_edit = require('mcp-tools.editor.diagnostics.after_edit')
local answer = require('mcp-tools.editor.diagnostics.edit_answer')
local buffers = require('mcp-tools.editor.buffer')
local edit = require('mcp-tools.editor.edit')
local errors = require('mcp-tools.errors')
local history = require('mcp-tools.editor.edit.history')
local hunk_list = require('mcp-tools.editor.text.hunks')
local identity = require('mcp-tools.util.session').identity
local preview = require('mcp-tools.editor.edit.preview')
local project = require('mcp-tools.instances.project')
local target = require('mcp-tools.editor.buffer.target')
local undo = require('mcp-tools.editor.buffer.undo')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

---@param change mcp-tools.Change
---@return string
local function shown(change)
  return (utf8.repair(access.shown(change.path, project.root())))
end

---@param before string[]
---@param after string[]
---@param ctx mcp-tools.Ctx?
---@return mcp-tools.Hunk[]
local function difference(before, after, ctx)
  return not ctx and hunk_list.between(before, after)
    or ctx:await(function(done)
      hunk_list.compare(before, after, done)
    end)
end

--- Returns the difference between two undo states as a change.
---@param bufnr integer
---@param from integer
---@param to integer
---@param ctx mcp-tools.Ctx?
---@return mcp-tools.Change[]
local function between(bufnr, from, to, ctx)
  local texts = errors.unwrap(undo.texts(bufnr, { from, to }, ctx))
  local hunks = difference(texts[1], texts[2], ctx)
  local change = { path = api.nvim_buf_get_name(bufnr), bufnr = bufnr, before = texts[1], hunks = hunks }
  return {
    change --[[@as mcp-tools.Change]],
  }
end

--- Joins the edits of a file, so that each file has one.
---@param list mcp-tools.Change[] newest first
---@param ctx mcp-tools.Ctx?
---@return mcp-tools.Change[]
local function joined(list, ctx)
  local by_path, out = {}, {}
  for _, change in ipairs(list) do
    if by_path[change.path] then
      table.insert(by_path[change.path], change)
    else
      by_path[change.path] = { change }
      table.insert(out, by_path[change.path])
    end
  end
  return vim.tbl_map(function(edits)
    local newest, oldest = edits[1], edits[#edits]
    if #edits == 1 then
      return newest
    end
    local hunks = difference(oldest.before, history.after(newest), ctx)
    local all = { before = oldest.before, hunks = hunks, is_new = oldest.is_new, parts = edits }
    return vim.tbl_extend('force', newest, all)
  end, out)
end

--- Returns the edits of the client's last call that are not reverted yet.
---@param place { path: string?, bufnr: integer? }?
---@param client mcp-tools.Ctx|mcp-tools.Call
---@return mcp-tools.Change[]? list newest first
---@return mcp-tools.Error? err
local function last_of(place, client)
  if not identity(client) then
    local text = 'change: is missing; clients without a session or name have no last edit; change_list lists the edits'
    return nil, errors.new('validation_error', text)
  end
  local list = {}
  for _, change in ipairs(history.list(place)) do
    local is_own = not change.reverted and not change.reverts and history.is_of(change, client)
    if is_own and (not list[1] or list[1].call == change.call) then
      table.insert(list, change)
    end
  end
  if #list == 0 then
    local text = 'you have made no edit%s left to revert; change_list lists all edits'
    return nil, errors.new('not_found', text:format(place and ' there' or ''))
  end
  return list
end

---@param id string of change_list
---@return mcp-tools.Change?
local function recorded(id)
  return history.find(tonumber(id:match('^#?(%d+)$')) or 0)
end

--- Returns the change with an id of change_list.
---@param id string
---@param ctx mcp-tools.Ctx?
---@return mcp-tools.Change[]?
---@return mcp-tools.Error? err
local function by_id(id, ctx)
  local change = recorded(id)
  if change then
    return { change }
  end
  local bufnr, seq = id:match('^#?u(%d+)%.(%d+)$')
  bufnr, seq = tonumber(bufnr), tonumber(seq)
  local step = bufnr and api.nvim_buf_is_loaded(bufnr) and undo.steps(bufnr)[seq]
  if not step then
    return nil, errors.new('not_found', 'change: there is no such edit; change_list lists the ids')
  end
  return between(bufnr, step.parent, seq, ctx)
end

--- Returns all edits of a file since some minutes ago as one change.
---@param place { path: string?, bufnr: integer? }
---@param minutes number
---@param ctx mcp-tools.Ctx?
---@return mcp-tools.Change[]?
---@return mcp-tools.Error? err
local function since(place, minutes, ctx)
  local bufnr = place.bufnr
  if not bufnr then
    local text = '%s is not open, so it has no undo history; give an id of change_list as `change`'
    return nil, errors.new('not_found', text:format(access.shown(place.path, project.root())))
  end
  local steps, now = undo.steps(bufnr)
  local seq, limit = now, os.time() - minutes * 60
  while steps[seq] and steps[seq].at >= limit do
    seq = steps[seq].parent
  end
  if seq == now then
    local text = 'minutes: %s has not been edited in the last %g minutes; change_list lists the edits'
    return nil, errors.new('not_found', text:format(buffers.shown(bufnr), minutes))
  end
  return between(bufnr, seq, now, ctx)
end

--- Returns the changes to revert.
---@param args table
---@param client mcp-tools.Ctx|mcp-tools.Call
---@param ctx mcp-tools.Ctx?
---@return mcp-tools.Change[]?
---@return mcp-tools.Error? err
local function changes_of(args, client, ctx)
  local place
  if args.change and args.minutes then
    return nil, errors.new('validation_error', 'change: cannot be combined with minutes')
  elseif args.change then
    return by_id(args.change, ctx)
  elseif args.path or args.bufnr then
    place = errors.unwrap(buffers.find(args))
  end
  if args.minutes then
    if not place then
      return nil, errors.new('validation_error', 'path: is missing; minutes needs a file')
    end
    return since(place, args.minutes, ctx)
  end
  return joined(errors.unwrap(last_of(place, client)), ctx)
end

--- Returns whether the review shows all that a call does; it does not show that a file is deleted.
---@param args table
---@param call mcp-tools.Call
---@return boolean
local function is_reviewed(args, call)
  local list = { args.change and recorded(args.change) }
  if not args.change and not args.minutes then
    local place = (args.path or args.bufnr) and errors.unwrap(buffers.find(args)) or nil
    list = errors.unwrap(last_of(place, call))
  end
  return not vim.iter(list):any(function(change)
    return change.is_new
  end)
end

---@param change mcp-tools.Change
---@return { path: string?, bufnr: integer? }
local function place_of(change)
  local bufnr = history.buffer(change)
  return { bufnr = bufnr, path = not bufnr and change.path or nil }
end

---@param ctx mcp-tools.Ctx
---@param change mcp-tools.Change
---@return mcp-tools.FileEdits
local function item_of(ctx, change)
  local found, err = target.await(ctx, place_of(change), { load = true })
  errors.check(err or edit.refusal(found.bufnr))
  local lines, tick = api.nvim_buf_get_lines(found.bufnr, 0, -1, false), api.nvim_buf_get_changedtick(found.bufnr)
  local edits = hunk_list.edits(errors.unwrap(edit.reverse(change, lines)))
  return { path = found.path, bufnr = found.bufnr, edits = edits, changedtick = tick, lines = lines }
end

return {
  name = 'change_revert',
  title = 'Revert edits',
  description = 'Reverts edits: your last one (of `path` if given), one of change_list, or all of a file since some'
    .. ' minutes ago. What was typed later is kept. It can be undone itself.',
  search_hint = 'undo, revert, restore, roll back, discard changes',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0, hidden = true },
    change = { type = 'string', description = 'Id of change_list', minLength = 1 },
    minutes = { type = 'number', description = 'How far back', minimum = 0 },
    diagnostics = after_edit.ARG,
  },
  prepare = function(args)
    args.change = type(args.change) == 'number' and tostring(args.change) or args.change
    return args
  end,
  annotations = { read_only = false, destructive = true },
  recommended = true,
  needs_approval = 'it changes text',
  reviewed = is_reviewed,
  preview = function(args, again, call)
    return preview.of_all(errors.unwrap(changes_of(args, call or { host = 'mcp' })), function(change)
      if change.is_new then
        return ('Deletes %s, which edit #%d created.\n'):format(shown(change), change.id)
      end
      return preview.of(place_of(change), function(lines)
        local hunks, fault = edit.reverse(change, lines)
        return hunks and hunk_list.edits(hunks), fault
      end, { again = again })
    end)
  end,
  run = function(ctx, args)
    local items, edited, created = {}, {}, {}
    for _, change in ipairs(errors.unwrap(changes_of(args, ctx, ctx))) do
      if change.is_new then
        table.insert(created, change)
      else
        table.insert(items, item_of(ctx, change))
        table.insert(edited, change)
      end
    end
    local files = #items == 0 and {}
      or errors.unwrap(ctx:await(function(done)
        edit.apply_all(items, { ctx = ctx }, done)
      end))
    local reverts, deleted = {}, {}
    for i, change in ipairs(edited) do
      local id = files[i].change
      if id then
        history.note_revert(change, id)
        table.insert(reverts, ('#%d'):format(id))
      end
    end
    for _, change in ipairs(created) do
      local err = target.path_refusal(ctx, change.path)
        or ctx:await(function(done)
          edit.revert(change, function(_, fault)
            done(fault)
          end)
        end)
      if err and #items == 0 then
        return nil, err
      end
      local how = err and 'not deleted: ' .. err.message or 'deleted; it was created by this edit'
      table.insert(deleted, ('%s: %s'):format(shown(change), how))
    end
    return vim.tbl_extend('error', answer.of(ctx, args, files), { deleted = deleted, reverts = reverts })
  end,
  render = function(value)
    local rows = #value.files > 0 and { answer.text(value) } or {}
    vim.list_extend(rows, value.deleted)
    if #value.reverts > 0 then
      table.insert(rows, ('to undo this: change_revert with change %s'):format(table.concat(value.reverts, ', ')))
    end
    return table.concat(rows, '\n')
  end,
}
