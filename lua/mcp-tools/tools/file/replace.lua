--- Replaces text in many files atomically, if the number of matches is the expected one; otherwise lists them.

local background = require('mcp-tools.editor.background')
local buffers = require('mcp-tools.editor.buffer')
local canonical_json = require('mcp-tools.util.canonical_json')
local edit = require('mcp-tools.editor.edit')
local edit_preview = require('mcp-tools.editor.edit.preview')
local errors = require('mcp-tools.errors')
local lru = require('mcp-tools.util.lru')
local matches_text = require('mcp-tools.editor.search.matches_text')
local project = require('mcp-tools.instances.project')
local redact = require('mcp-tools.privacy.redact')
local result = require('mcp-tools.editor.result')
local search = require('mcp-tools.editor.search')
local text_edits = require('mcp-tools.editor.text.edits')
local time_slice = require('mcp-tools.util.time_slice')

--- Maximum number of files and matches in one call.
local MAX_FILES, MAX_PLACES = 500, 10000
--- Maximum size of all replacements in one call, in bytes.
local MAX_NEW = 4 * 1024 * 1024
--- Up to this number of matches in one line are replaced separately, so that extmarks between them stay.
local MAX_IN_LINE = 20
--- Number of diffs kept for approval.
local MAX_DIFFS = 20

---@class mcp-tools.Occurrence
---@field row integer from 0
---@field col integer bytes
---@field line string
---@field match mcp-tools.search.Match
---@field new string

---@class mcp-tools.ReplaceFile
---@field file mcp-tools.search.File
---@field occurrences mcp-tools.Occurrence[]

---@class mcp-tools.ReplacePlan
---@field files mcp-tools.ReplaceFile[]
---@field total integer
---@field skipped integer

---@class mcp-tools.ReplaceArgs: mcp-tools.search.Query
---@field replacement string
---@field path string?
---@field globs string[]?

--- Returns the line of each match, and its groups if the replacement refers to some.
---@param ctx mcp-tools.Ctx
---@param found mcp-tools.search.Found
---@param replacement string
---@return { line: string, groups: table<string, string>? }[][]? places by file
---@return mcp-tools.Error? err
local function places_of(ctx, found, replacement)
  local places, lines, pause = {}, {}, time_slice.of(ctx)
  local has_groups = found.engine ~= nil and replacement:find('%$[%d$]') ~= nil
  for i, file in ipairs(found.files) do
    local row_of, last, list = matches_text.rows(file.text), nil, {}
    for k, match in ipairs(file.matches) do
      local line = row_of(match.row) or ''
      if match.row ~= last then
        last = match.row
        table.insert(lines, line .. '\n')
      end
      list[k] = { line = line, groups = has_groups and { ['0'] = line:sub(match.col + 1, match.end_col), ['$'] = '$' } }
      pause()
    end
    places[i] = list
  end
  if not (has_groups and replacement:gsub('%$%$', ''):find('%$[1-9]')) then
    return places
  end
  local all, err = found.engine:groups(ctx, table.concat(lines))
  if not all then
    return nil, err
  end
  local at = 0
  for _, list in ipairs(places) do
    for _, place in ipairs(list) do
      at = at + 1
      if not all[at] or all[at]['0'] ~= place.groups['0'] then
        return nil, errors.new('tool_error', 'replacement: the groups of the matches cannot be determined')
      end
      place.groups = vim.tbl_extend('force', place.groups, all[at])
    end
    pause()
  end
  return places
end

--- Returns the replacement of a match: `$0` and `$1` are the match and a group of a regular expression, `$$` is a
--- dollar.
---@param replacement string
---@param groups table<string, string>?
---@param room integer
---@return string? text nil if it would be longer than `room` bytes
local function replaced(replacement, groups, room)
  if not groups then
    return #replacement <= room and replacement or nil
  end
  local size = #replacement
  for which in replacement:gmatch('%$([%d$])') do
    size = size - 2 + #(groups[which] or '')
  end
  return size <= room and (replacement:gsub('%$([%d$])', groups)) or nil
end

--- Finds all matches and their replacements.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args mcp-tools.ReplaceArgs
---@return mcp-tools.ReplacePlan?
---@return mcp-tools.Error? err
local function plan_of(ctx, args)
  local found, err = search.find(ctx, args, args)
  if not found then
    return nil, err
  elseif found.cut or #found.files > MAX_FILES or found.total > MAX_PLACES then
    local text = '%d matches in %d files; the maximum is %d in %d: narrow it with path or globs'
    return nil, errors.new('too_large', text:format(found.total, #found.files, MAX_PLACES, MAX_FILES))
  end
  local places
  places, err = places_of(ctx, found, args.replacement)
  if not places then
    return nil, err
  end
  local plan, pause = { files = {}, total = found.total, skipped = found.skipped }, time_slice.of(ctx)
  local room = MAX_NEW
  for i, file in ipairs(found.files) do
    local list = {}
    for k, match in ipairs(file.matches) do
      local place = places[i][k]
      local new = replaced(args.replacement, place.groups, room)
      if not new then
        local text = 'replacement: all replacements would be more than %d MiB; make it shorter, or narrow it with path'
        return nil, errors.new('too_large', text:format(MAX_NEW / 1024 / 1024))
      end
      room = room - #new
      list[k] = {
        row = match.row,
        col = match.col,
        line = place.line,
        match = match,
        new = new,
      }
      pause()
    end
    table.insert(plan.files, { file = file, occurrences = list })
    pause()
  end
  return plan
end

--- Returns the edits of a file. Many in one line become one edit, since each would copy the line.
---@param each mcp-tools.ReplaceFile
---@return mcp-tools.Edit[]
local function edits_of(each)
  local edits, in_row = {}, {}
  for _, occurrence in ipairs(each.occurrences) do
    in_row[occurrence.row] = (in_row[occurrence.row] or 0) + 1
  end
  local joined, all = nil, {} ---@type { edit: mcp-tools.Edit, parts: string[] }?, table[]
  for _, occurrence in ipairs(each.occurrences) do
    local match = occurrence.match
    local is_one = match.end_row == match.row and in_row[match.row] > MAX_IN_LINE
    if is_one and joined and joined.edit.start_line == match.row then
      table.insert(joined.parts, occurrence.line:sub(joined.edit.end_col + 1, match.col))
      table.insert(joined.parts, occurrence.new)
      joined.edit.end_col = match.end_col
    else
      local new_edit = {
        start_line = match.row,
        start_col = match.col,
        end_line = match.end_row,
        end_col = match.end_col,
        text = occurrence.new,
      }
      table.insert(edits, new_edit)
      joined = is_one and { edit = new_edit, parts = { occurrence.new } } or nil
      table.insert(all, joined)
    end
  end
  for _, each_joined in ipairs(all) do
    each_joined.edit.text = table.concat(each_joined.parts)
  end
  return edits
end

---@param file mcp-tools.search.File
---@return string[]
local function lines_of(file)
  return vim.split((file.text:gsub('\n$', '')), '\n', { plain = true })
end

--- Applies a plan atomically. It is for the texts that were searched.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param plan mcp-tools.ReplacePlan
---@return mcp-tools.FilesEdited? in the order of the plan
---@return mcp-tools.Error? err
local function apply(ctx, plan)
  local items, pause = {}, time_slice.of(ctx)
  for i, each in ipairs(plan.files) do
    local file = each.file
    items[i] = {
      path = file.path,
      bufnr = file.bufnr,
      edits = edits_of(each),
      changedtick = file.changedtick,
      lines = not file.changedtick and lines_of(file) or nil,
    }
    pause()
  end
  return ctx:await(function(done)
    edit.apply_all(items, { ctx = ctx }, done)
  end)
end

--- Returns the plan of a replacement after checking its count.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return mcp-tools.ReplacePlan?
---@return mcp-tools.Error? err
local function counted(ctx, args)
  local plan, err = plan_of(ctx, args)
  if plan and plan.total ~= args.expected_count then
    local text = 'expected_count is %d, but there are %d matches; nothing was replaced'
    return nil, errors.new('stale', text:format(args.expected_count, plan.total))
  end
  return plan, err
end

-- Preview -------------------------------------------------------------------------------------------------------------

---@class mcp-tools.ReplaceDiff
---@field diff string
---@field states table<string, string> path → state of the text in the diff

--- By project and arguments.
local computed = lru(MAX_DIFFS)

--- Describes the state of a text: it differs after a change of the file or its buffer.
---@param path string
---@param tick integer? changedtick of the buffer, if the file is open
---@return string
local function state_of(path, tick)
  local stat = vim.uv.fs_stat(path)
  local on_disk = stat and ('%d.%d %d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.size, stat.ino)
  return ('%s %s'):format(tick or '', on_disk or '')
end

--- Returns the diff of a call if it is known and the texts in it have not changed.
---@param key string
---@return string?
local function known_diff(key)
  local known, of_path = computed:get(key), buffers.of_paths()
  for path, state in pairs(known and known.states or {}) do
    local bufnr = of_path(path)
    if state_of(path, bufnr and vim.api.nvim_buf_get_changedtick(bufnr)) ~= state then
      return nil
    end
  end
  return known and known.diff
end

---@param ctx mcp-tools.Ctx
---@param plan mcp-tools.ReplacePlan
---@return string
local function diff_of(ctx, plan)
  local parts, pause = {}, time_slice.of(ctx)
  for _, each in ipairs(plan.files) do
    local lines = lines_of(each.file)
    local names = { old = 'a/' .. each.file.shown, new = 'b/' .. each.file.shown, context = 1 }
    table.insert(parts, (text_edits.unified(lines, edits_of(each), names)))
    pause()
  end
  return table.concat(parts)
end

--- Returns the approval text: a sentence at first, the diff when the files have been searched.
---@param args table
---@param again? fun(err: mcp-tools.Error?) called when the diff is known
---@return string?
---@return mcp-tools.Error? err
local function preview(args, again)
  local key = project.root() .. '\n' .. canonical_json.text(args)
  local diff = known_diff(key)
  if diff then
    return edit_preview.shown(diff)
  end
  if again and args.expected_count then
    background.prepare(function(ctx)
      local plan, failed = counted(ctx, args)
      local states = {}
      for _, each in ipairs(plan and plan.files or {}) do
        states[each.file.path] = state_of(each.file.path, each.file.changedtick)
      end
      computed:set(key, plan and { diff = diff_of(ctx, plan), states = states } or nil)
      return failed
    end, again)
  end
  local text = 'replaces %s of "%s" with "%s" in %s\n(the diff appears here when the files have been searched)'
  local count = result.count(args.expected_count or 0, 'match', 'matches')
  return text:format(count, args.query, args.replacement, args.path or 'the project')
end

-- Result --------------------------------------------------------------------------------------------------------------

--- Maximum number of listed matches.
local MAX_LISTED = 100
--- Maximum number of files in the result of a replacement.
local MAX_NAMED = 20
--- Written files are listed only if there are at most this many.
local MAX_FEW = 5

--- Returns the first matches by file.
---@param plan mcp-tools.ReplacePlan
---@param regex boolean
---@param pause fun() called between pieces of work
---@return table
local function listed(plan, regex, pause)
  local files, left, column_of = {}, MAX_LISTED, matches_text.columns()
  for i, each in ipairs(plan.files) do
    local rows = {}
    for k = 1, math.min(#each.occurrences, left) do
      local one = each.occurrences[k]
      rows[k] = {
        line = one.row + 1,
        column = column_of(one.line, one.col),
        text = matches_text.shown(one.line, one.col),
        new = regex and matches_text.shown(one.new) or nil,
      }
      pause()
    end
    left = left - #rows
    files[i] = { path = each.file.shown, total = #each.occurrences, rows = rows }
  end
  return { total = plan.total, files = files, skipped = plan.skipped > 0 and plan.skipped or nil }
end

--- Returns matches that were not replaced as text.
---@param value table
---@return string
local function list_text(value)
  local matches = result.count(value.total, 'match', 'matches')
  local head = ('%s in %s, nothing replaced'):format(matches, result.count(#value.files, 'file'))
  if value.total > 0 then
    head = ('%s; expected_count=%d replaces all'):format(head, value.total)
  end
  if value.total > MAX_LISTED then
    head = ('%s; the first %d:'):format(head, MAX_LISTED)
  end
  if value.skipped then
    head = ('%s; %d files are too large to be searched'):format(head, value.skipped)
  end
  local variant = {
    text = function()
      local lines = { head }
      for _, file in ipairs(value.files) do
        for _, row in ipairs(file.rows) do
          local new = row.new and ' → ' .. row.new or ''
          table.insert(lines, ('%s:%d: %s%s'):format(file.path, row.line, row.text, new))
        end
      end
      return lines
    end,
  }
  return matches_text.fitting(head, { variant }, value.files, function(file)
    return ('%s: %d'):format(file.path, file.total)
  end, 'lines')
end

--- Returns the result of a replacement.
---@param plan mcp-tools.ReplacePlan
---@param edited mcp-tools.FilesEdited
---@return table
local function done_of(plan, edited)
  local files = {}
  for i, each in ipairs(plan.files) do
    files[i] = {
      path = each.file.shown,
      total = #each.occurrences,
      written = edited[i].written,
      changed = #edited[i].hunks > 0,
    }
  end
  return { replaced = plan.total, files = files, rejected = edited.rejected, edited_by_user = edited.edited }
end

--- Returns the result of a replacement as text.
---@param value table
---@return string
local function done_text(value)
  local count = result.count(#value.files, 'file')
  local list = { ('%s replaced in %s'):format(result.count(value.replaced, 'match', 'matches'), count) }
  if value.rejected or value.edited_by_user then
    list[1] = list[1] .. ', as far as the user accepted them'
  end
  local named, others = {}, {}
  for _, file in ipairs(value.files) do
    local state = file.written and '' or not file.changed and ', unchanged' or ', unsaved (open in the editor)'
    table.insert(state == '' and others or named, ('%s: %d%s'):format(file.path, file.total, state))
  end
  -- Unsaved files first: clients must know them.
  vim.list_extend(named, #others <= MAX_FEW and others or {})
  vim.list_extend(list, named, 1, math.min(#named, MAX_NAMED))
  if #named > MAX_NAMED then
    table.insert(list, ('and %d more unsaved or unchanged files'):format(#named - MAX_NAMED))
  end
  for _, each in ipairs(value.rejected or {}) do
    local reason = each.reason and ': ' .. each.reason or ''
    table.insert(list, ('rejected by the user: %s:%d%s'):format(each.path, each.line, reason))
  end
  return table.concat(list, '\n')
end

return {
  name = 'file_replace',
  title = 'Replace in files',
  description = 'Replaces a text in all matching files, all or nothing. With `expected_count` at once; without it only'
    .. ' the matches are returned.',
  search_hint = 'sed, search and replace, substitute everywhere',
  args = {
    query = { type = 'string', description = 'Text to find', required = true, minLength = 1 },
    replacement = {
      type = 'string',
      description = 'New text; with regex, $1 is a group, $$ a dollar',
      required = true,
    },
    regex = {
      type = 'boolean',
      description = 'The query is a regular expression in the syntax of ripgrep',
      default = false,
    },
    ignore_case = { type = 'boolean', description = 'Case-insensitive', default = false },
    path = { type = 'string', description = 'File or directory' },
    globs = {
      type = 'array',
      items = { type = 'string', maxLength = 500 },
      description = 'Such as `*.lua` or `src/**`; `!` excludes',
    },
    expected_count = { type = 'integer', description = 'Number of matches that must be there', minimum = 0 },
    word = { type = 'boolean', description = 'Whole words only', default = false, hidden = true },
  },
  annotations = { read_only = false, destructive = true, idempotent = false },
  recommended = true,
  needs_approval = function(args)
    return args.expected_count ~= nil and 'it changes files'
  end,
  preview = preview,
  reviewed = true,
  run = function(ctx, args)
    if not args.expected_count then
      local plan, err = plan_of(ctx, args)
      if not plan then
        return nil, err
      end
      local pause = time_slice.of(ctx)
      redact.refresh(pause)
      return listed(plan, args.regex, pause)
    end
    local plan, err = counted(ctx, args)
    local files
    if plan then
      files, err = apply(ctx, plan)
    end
    if not plan or not files then
      return nil, err
    end
    return done_of(plan, files)
  end,
  render = function(value)
    return value.replaced and done_text(value) or list_text(value)
  end,
}
