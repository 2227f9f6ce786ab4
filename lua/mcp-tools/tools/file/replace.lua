--- Replaces text in many files atomically, if the number of matches is the expected one; otherwise lists them.

local arguments = require('mcp-tools.editor.arguments')
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

---@class mcp-tools.MatchToReplace: mcp-tools.search.Match
---@field line string on which the match begins
---@field new string

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

--- Adds its line to each match.
---@param found mcp-tools.search.Found
---@param pause fun()
---@return string lines that have matches
local function add_lines(found, pause)
  local lines = {}
  for _, file in ipairs(found.files) do
    local row_of, last = matches_text.rows(file.text), nil
    for _, match in ipairs(file.matches) do
      ---@cast match mcp-tools.MatchToReplace
      match.line = row_of(match.row) or ''
      if match.row ~= last then
        last = match.row
        table.insert(lines, match.line .. '\n')
      end
      pause()
    end
  end
  return table.concat(lines)
end

--- Finds all matches, each a `Replacement`.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return mcp-tools.search.Found
local function find(ctx, args)
  local found = errors.unwrap(search.find(ctx, args, args))
  if found.cut or #found.files > MAX_FILES or found.total > MAX_PLACES then
    local text = '%d matches in %d files; the maximum is %d in %d: narrow it with path or globs'
    error(errors.new('too_large', text:format(found.total, #found.files, MAX_PLACES, MAX_FILES)), 0)
  end
  local pause, room, at = time_slice.of(ctx), MAX_NEW, 0
  local lines, groups = add_lines(found, pause), nil
  local has_groups = found.engine ~= nil and args.replacement:find('%$[%d$]') ~= nil
  if has_groups and args.replacement:gsub('%$%$', ''):find('%$[1-9]') then
    groups = errors.unwrap(found.engine:groups(ctx, lines))
  end
  for _, file in ipairs(found.files) do
    for _, match in ipairs(file.matches) do
      ---@cast match mcp-tools.MatchToReplace
      at = at + 1
      local whole = match.line:sub(match.col + 1, match.end_col)
      if groups and (groups[at] or {})['0'] ~= whole then
        error(errors.new('tool_error', 'replacement: the groups of the matches cannot be determined'), 0)
      end
      local all = has_groups and vim.tbl_extend('force', groups and groups[at] or {}, { ['0'] = whole, ['$'] = '$' })
      match.new = replaced(args.replacement, all or nil, room)
      if not match.new then
        local text = 'replacement: all replacements would be more than %d MiB; make it shorter, or narrow it with path'
        error(errors.new('too_large', text:format(MAX_NEW / 1024 / 1024)), 0)
      end
      room = room - #match.new
      pause()
    end
  end
  return found
end

--- Returns the edits of a file. Many in one line become one edit, since each would copy the line.
---@param file mcp-tools.search.File
---@return mcp-tools.Edit[]
local function edits_of(file)
  local edits, in_row, joined = {}, {}, nil
  for _, match in ipairs(file.matches) do
    in_row[match.row] = (in_row[match.row] or 0) + 1
  end
  for _, match in ipairs(file.matches) do
    ---@cast match mcp-tools.MatchToReplace
    local is_one = match.end_row == match.row and in_row[match.row] > MAX_IN_LINE
    if is_one and joined and joined.start_line == match.row then
      vim.list_extend(joined.text, { match.line:sub(joined.end_col + 1, match.col), match.new })
      joined.end_col = match.end_col
    else
      joined = {
        start_line = match.row,
        start_col = match.col,
        end_line = match.end_row,
        end_col = match.end_col,
        text = { match.new },
      }
      table.insert(edits, joined)
      joined = is_one and joined or nil
    end
  end
  for _, each in ipairs(edits) do
    each.text = table.concat(each.text)
  end
  return edits
end

---@param file mcp-tools.search.File
---@return string[]
local function lines_of(file)
  return vim.split((file.text:gsub('\n$', '')), '\n', { plain = true })
end

--- Replaces all matches atomically, in the texts that were searched.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param found mcp-tools.search.Found
---@return mcp-tools.FilesEdited? in the order of the files
---@return mcp-tools.Error? err
local function apply(ctx, found)
  local items, pause = {}, time_slice.of(ctx)
  for i, file in ipairs(found.files) do
    items[i] = {
      path = file.path,
      bufnr = file.bufnr,
      edits = edits_of(file),
      changedtick = file.changedtick,
      lines = not file.changedtick and lines_of(file) or nil,
    }
    pause()
  end
  return ctx:await(function(done)
    edit.apply_all(items, { ctx = ctx }, done)
  end)
end

--- Finds all matches and checks their count.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return mcp-tools.search.Found
local function find_expected(ctx, args)
  local found = find(ctx, args)
  if found.total ~= args.expected_count then
    local text = 'expected_count is %d, but there are %d matches; nothing was replaced'
    error(errors.new('stale', text:format(args.expected_count, found.total)), 0)
  end
  return found
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
---@param found mcp-tools.search.Found
---@return string
local function diff_of(ctx, found)
  local parts, pause = {}, time_slice.of(ctx)
  for i, file in ipairs(found.files) do
    local names = { old = 'a/' .. file.shown, new = 'b/' .. file.shown, context = 1 }
    parts[i] = text_edits.unified(lines_of(file), edits_of(file), names)
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
      local found, states = find_expected(ctx, args), {}
      for _, file in ipairs(found.files) do
        states[file.path] = state_of(file.path, file.changedtick)
      end
      computed:set(key, { diff = diff_of(ctx, found), states = states })
    end, again)
  end
  local text = 'replaces %s of "%s" with "%s" in %s\n(the diff appears here when the files have been searched)'
  local count = result.count(args.expected_count or 0, 'match', 'matches')
  return text:format(count, args.query, args.replacement, args.path or 'the project')
end

-- Result --------------------------------------------------------------------------------------------------------------

--- Maximum number of listed matches.
local MAX_LISTED = 40
--- Maximum number of files in the result of a replacement.
local MAX_NAMED = 20
--- Written files are listed only if there are at most this many.
local MAX_FEW = 5

--- Returns the first matches by file.
---@param ctx mcp-tools.Ctx
---@param found mcp-tools.search.Found
---@param regex boolean
---@return table
local function listed(ctx, found, regex)
  local files, left, pause = {}, MAX_LISTED, time_slice.of(ctx)
  redact.refresh(pause)
  for i, file in ipairs(found.files) do
    local rows = {}
    for k = 1, math.min(#file.matches, left) do
      local match = file.matches[k] --[[@as mcp-tools.MatchToReplace]]
      local new = regex and matches_text.shown(match.new) or nil
      rows[k] = { line = match.row + 1, text = matches_text.shown(match.line, match.col), new = new }
      pause()
    end
    left = left - #rows
    files[i] = { path = file.shown, total = #file.matches, rows = rows }
  end
  return { total = found.total, files = files, skipped = found.skipped > 0 and found.skipped or nil }
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

---@param found mcp-tools.search.Found
---@param edited mcp-tools.FilesEdited
---@return table
local function done_of(found, edited)
  local files = {}
  for i, file in ipairs(found.files) do
    local changed = #edited[i].hunks > 0
    files[i] = { path = file.shown, total = #file.matches, written = edited[i].written, changed = changed }
  end
  return { replaced = found.total, files = files, rejected = edited.rejected, edited_by_user = edited.edited }
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
  result.add_review(list, value)
  return table.concat(list, '\n')
end

return {
  name = 'file_replace',
  title = 'Replace in files',
  description = 'Replaces a text in all matching files, all or nothing. With `expected_count` at once; without it only'
    .. ' the matches are returned.',
  search_hint = 'sed, find and replace, search and replace, multiple files, substitute everywhere',
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
    globs = arguments.GLOBS,
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
    local found = (args.expected_count and find_expected or find)(ctx, args)
    if not args.expected_count then
      return listed(ctx, found, args.regex)
    end
    return done_of(found, errors.unwrap(apply(ctx, found)))
  end,
  render = function(value)
    return value.replaced and done_text(value) or list_text(value)
  end,
}
