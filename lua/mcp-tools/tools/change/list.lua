--- Lists recent edits: those of agents, from the history, and the user's, from the undo trees of open files.

local access = require('mcp-tools.privacy.access')
local arguments = require('mcp-tools.editor.arguments')
local buffers = require('mcp-tools.editor.buffer')
local contents = require('mcp-tools.editor.buffer.contents')
local errors = require('mcp-tools.errors')
local history = require('mcp-tools.editor.edit.history')
local result = require('mcp-tools.editor.result')
local target = require('mcp-tools.editor.buffer.target')
local text_diff = require('mcp-tools.editor.text.diff')
local time_slice = require('mcp-tools.util.time_slice')
local undo = require('mcp-tools.editor.buffer.undo')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

--- Maximum size of all diffs in bytes, and of a buffer whose earlier texts are compared, in lines.
local MAX_BYTES, MAX_LINES = 20000, 10000
local DAY = 24 * 60 * 60

---@class mcp-tools.ChangeRow
---@field id string for change_revert
---@field time integer seconds since the epoch
---@field path string
---@field line integer?
---@field removed integer?
---@field added integer?
---@field by string? agent that made it, or "you"; nil: the user, or a program that is not an agent
---@field tool string?
---@field is_undone boolean?

--- Returns the loaded text buffers of a place, or all of them.
---@param place { bufnr: integer?, path: string? }?
---@return integer[]
local function buffers_at(place)
  if place and place.bufnr then
    return { place.bufnr }
  end
  local below = place and place.path .. '/'
  return vim.tbl_filter(function(bufnr)
    local path = access.is_text(bufnr) and (not below or access.buffer_path(bufnr))
    return path and (path == true or vim.startswith(path, below)) or false
  end, api.nvim_list_bufs())
end

-- Edits ---------------------------------------------------------------------------------------------------------------

---@param ctx mcp-tools.Ctx
---@param change mcp-tools.Change
---@return mcp-tools.ChangeRow
local function row_of_change(ctx, change)
  local line, is_undone = history.place(change)
  local removed, added = 0, 0
  for _, hunk in ipairs(change.hunks) do
    removed, added = removed + hunk.count, added + #hunk.new
  end
  return {
    id = tostring(change.id),
    time = change.at,
    path = change.path ~= '' and access.shown(change.path, ctx.root) or ('buffer %d'):format(change.bufnr),
    line = line,
    removed = removed,
    added = added,
    by = history.is_of(change, ctx) and 'you' or change.client and change.client.name or 'an agent',
    tool = change.tool,
    is_undone = is_undone or nil,
  }
end

--- Adds what steps of one undo tree changed.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@param list { row: mcp-tools.ChangeRow, step: mcp-tools.UndoStep }[]
local function compare_steps(ctx, bufnr, list)
  if not api.nvim_buf_is_loaded(bufnr) or api.nvim_buf_line_count(bufnr) > MAX_LINES then
    return
  end
  local seqs = {}
  for _, each in ipairs(list) do
    vim.list_extend(seqs, { each.step.parent, each.step.seq })
  end
  local texts, pause = undo.texts(bufnr, seqs, ctx) or {}, time_slice.of(ctx)
  for i, each in ipairs(texts[1] and list or {}) do
    local row, spans = each.row, text_diff.spans(texts[2 * i - 1], texts[2 * i])
    row.removed, row.added, row.line = 0, 0, spans[1] and spans[1][3]
    for _, span in ipairs(spans) do
      row.removed, row.added = row.removed + span[2], row.added + span[4]
    end
    pause()
  end
end

--- Returns the edits since a time, newest first.
---@param ctx mcp-tools.Ctx
---@param place { bufnr: integer?, path: string? }?
---@param since integer
---@return { at: integer, order: integer, change: mcp-tools.Change?, bufnr: integer?, step: mcp-tools.UndoStep? }[]
local function edits_since(ctx, place, since)
  local list, of_agents, pause = {}, {}, time_slice.of(ctx)
  for _, change in ipairs(history.list(place)) do
    if change.at >= since then
      table.insert(list, { at = change.at, order = change.id, change = change })
    end
    local steps = of_agents[change.bufnr or 0] or {}
    of_agents[change.bufnr or 0] = steps
    for seq = change.steps and change.steps[1] or 1, change.steps and change.steps[2] or 0 do
      steps[seq] = math.max(steps[seq] or 0, change.at)
    end
  end
  for _, bufnr in ipairs(buffers_at(place)) do
    pause()
    local is_loaded, agents = api.nvim_buf_is_loaded(bufnr), of_agents[bufnr] or {}
    for seq, step in pairs(is_loaded and undo.steps(bufnr) or {}) do
      -- A later step with the same number is from a new tree.
      if step.at >= since and not (agents[seq] and step.at <= agents[seq]) then
        table.insert(list, { at = step.at, order = seq, bufnr = bufnr, step = step })
      end
    end
  end
  table.sort(list, function(a, b)
    if a.at ~= b.at then
      return a.at > b.at
    end
    return a.order > b.order
  end)
  return list
end

---@param ctx mcp-tools.Ctx
---@param place { bufnr: integer?, path: string? }?
---@param args table
---@return table value
local function list_edits(ctx, place, args)
  local found = edits_since(ctx, place, args.minutes and os.time() - args.minutes * 60 or 0)
  local rows, by_buffer, pause = {}, {}, time_slice.of(ctx)
  for i = 1, math.min(args.limit, #found) do
    local one = found[i]
    if one.change then
      rows[i] = row_of_change(ctx, one.change)
      pause()
    else
      rows[i] = {
        id = ('u%d.%d'):format(one.bufnr, one.step.seq),
        time = one.at,
        path = buffers.shown(one.bufnr, ctx.root),
        is_undone = not one.step.is_applied or nil,
      }
      by_buffer[one.bufnr] = by_buffer[one.bufnr] or {}
      table.insert(by_buffer[one.bufnr], { row = rows[i], step = one.step })
    end
  end
  for bufnr, list in pairs(by_buffer) do
    compare_steps(ctx, bufnr, list)
  end
  return result.utf8({ edits = rows, total = #found })
end

---@param row mcp-tools.ChangeRow
---@return string
local function text_of(row)
  local time = os.date(row.time > os.time() - DAY and '%H:%M:%S' or '%Y-%m-%d %H:%M:%S', row.time)
  local count = row.added and (' −%d +%d'):format(row.removed, row.added) or ''
  local who = row.by and ('by %s, %s'):format(row.by, row.tool) or 'in the editor'
  local place = row.line and ('%s:%d'):format(row.path, row.line) or row.path
  return ('%s %s #%s%s %s%s'):format(place, time, row.id, count, who, row.is_undone and ', undone' or '')
end

-- Unsaved text --------------------------------------------------------------------------------------------------------

--- Returns the difference between a buffer and its file.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@param max integer bytes
---@return { path: string, added: integer?, removed: integer?, diff: string?, note: string? }
local function difference(ctx, bufnr, max)
  local found, err = target.await(ctx, { bufnr = bufnr }, {})
  local shown = utf8.repair(found and found.shown or buffers.shown(bufnr, ctx.root))
  local before, now, note
  if found then
    now = contents.lines(bufnr, time_slice.of(ctx))
    before, err = {}, not now and buffers.gone(bufnr) or nil
    note = not found.path and 'it has no file' or nil
  end
  if found and found.path and not err then
    before, err = contents.on_disk(ctx, found.path, bufnr)
    if err and err.code == 'not_found' then
      before, err, note = {}, nil, 'there is no such file on disk'
    end
  end
  if err then
    return { path = shown, note = err.message }
  end
  local names = { old = before[1] and 'a/' .. shown or '/dev/null', new = 'b/' .. shown }
  local found_diff = text_diff.await(ctx, before, now, names, max)
  note = note or not found_diff.diff and 'too large to show; read it with file_read' or nil
  return vim.tbl_extend('error', found_diff, { path = shown, note = note })
end

---@param ctx mcp-tools.Ctx
---@param place { bufnr: integer?, path: string? }?
---@param args table
---@return table value
local function list_unsaved(ctx, place, args)
  local files, total, left = {}, 0, MAX_BYTES
  for _, bufnr in ipairs(buffers_at(place)) do
    if vim.bo[bufnr].modified then
      total = total + 1
      if #files < args.limit then
        table.insert(files, difference(ctx, bufnr, left))
        left = left - #(files[#files].diff or '')
      end
    end
  end
  return { unsaved = files, total = total }
end

return {
  name = 'change_list',
  title = 'List edits',
  description = "Lists recent edits of open files with their times: yours, other agents', and the user's own undo"
    .. ' history. With `unsaved` the diff between open files and disk.',
  search_hint = 'undo tree, history, what did I change, who changed this, unsaved changes, diff',
  args = {
    path = { type = 'string', description = 'File or directory' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0, hidden = true },
    unsaved = { type = 'boolean', description = 'Diff of unsaved text' },
    minutes = { type = 'number', description = 'Maximum age', minimum = 0 },
    limit = arguments.limit('rows', 30, 200),
  },
  aliases = {
    undo_tree = function(args)
      args.bufnr = not args.path and args.bufnr or 0
      return args
    end,
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, args)
    local place = (args.path or args.bufnr) and errors.unwrap(buffers.find(args)) or nil
    local value = (args.unsaved and list_unsaved or list_edits)(ctx, place, args)
    if value.total == 0 and place and not place.bufnr and not vim.uv.fs_lstat(place.path) then
      return nil, errors.new('not_found', ('path: there is no file %s'):format(access.shown(place.path, ctx.root)))
    end
    return value
  end,
  render = function(value, args)
    local list = value.unsaved or value.edits
    if value.total == 0 then
      return value.unsaved and 'no unsaved changes' or 'no edits'
    end
    local head = result.count(value.total, 'edit') .. ', newest first'
    head = value.unsaved and ('unsaved changes in ' .. result.count(value.total, 'file')) or head
    local rows = { #list < value.total and ('%s; %d shown'):format(head, #list) or head }
    for _, one in ipairs(list) do
      if args.unsaved then
        local count = one.added and ('%s: −%d +%d'):format(one.path, one.removed, one.added) or one.path
        table.insert(rows, one.note and ('%s; %s'):format(count, one.note) or count)
        table.insert(rows, one.diff and one.diff:gsub('\n$', '') or nil)
      else
        table.insert(rows, text_of(one))
      end
    end
    return table.concat(rows, '\n')
  end,
}
