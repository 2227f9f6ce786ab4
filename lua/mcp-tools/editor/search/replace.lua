--- Text replaced in many files: looked at first, then all of what was meant, or nothing.
---
--- Receives: a query with its replacement, ids of occurrences, how many they must be; the ctx of a `run` tool.
--- Sends: occurrences with ids, or what has changed.
--- Does not know about: approval.
---
--- An id says which text stands where; where that has changed there is no such id any more.

local api = vim.api
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local edit = require('mcp-tools.editor.edit')
local edit_preview = require('mcp-tools.editor.edit.preview')
local errors = require('mcp-tools.errors')
local matches_text = require('mcp-tools.editor.search.matches_text')
local open = require('mcp-tools.editor.buffer.open')
local search = require('mcp-tools.editor.search')
local text_edits = require('mcp-tools.editor.edit.text_edits')
local time_slice = require('mcp-tools.util.time_slice')
local unified_diff = require('mcp-tools.editor.result.unified_diff')

local M = {}

--- Files and places of one call: more than a person looks through.
M.MAX_FILES, M.MAX_PLACES = 500, 10000
--- Bytes that places of one call become.
local MAX_NEW = 4 * 1024 * 1024
--- Bytes of the texts that a dry run keeps for the person's look at it.
local MAX_KEPT = 16 * 1024 * 1024

---@class mcp-tools.Occurrence
---@field id string
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
---@field passed integer

---@class mcp-tools.ReplaceArgs: mcp-tools.search.Query
---@field replacement string
---@field path string?
---@field globs string[]?

---@param file mcp-tools.search.File
---@param match mcp-tools.search.Match
---@param line string
---@return string
local function id_of(file, match, line)
  local text = ('%s\n%d\n%d\n'):format(file.path, match.row, match.col) .. line:gsub('%z', '\n') -- which takes no NUL
  return vim.fn.sha256(text):sub(1, 8)
end

--- Every occurrence, with what it would become.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args mcp-tools.ReplaceArgs
---@return mcp-tools.ReplacePlan?
---@return mcp-tools.Error? err
function M.plan(ctx, args)
  local found, err = search.find(ctx, args, args)
  if not found then
    return nil, err
  elseif found.cut or #found.files > M.MAX_FILES or found.total > M.MAX_PLACES then
    local text = '%d occurrences in %d files; at most %d in %d are replaced at once: narrow it with path or globs'
    return nil, errors.new('too_large', text:format(found.total, #found.files, M.MAX_PLACES, M.MAX_FILES))
  end
  local plan, pause = { files = {}, total = found.total, passed = found.passed }, time_slice.of(ctx)
  local replaced, room = found.matcher:replacer(args.replacement), MAX_NEW
  for _, file in ipairs(found.files) do
    local row_of, list = matches_text.rows(file.text), {}
    for i, match in ipairs(file.matches) do
      local line = row_of(match.row) or ''
      local new = replaced(line, match, room)
      if not new then
        local text =
          'replacement: it would make more than %d MiB of all places; make it shorter, or narrow it with path'
        return nil, errors.new('too_large', text:format(MAX_NEW / 1024 / 1024))
      end
      room = room - #new
      list[i] = {
        id = id_of(file, match, line),
        row = match.row,
        col = match.col,
        line = line,
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

--- Those that ids name.
---@param plan mcp-tools.ReplacePlan
---@param ids string[]?
---@return mcp-tools.ReplacePlan? plan
---@return mcp-tools.Error? err
function M.chosen(plan, ids)
  if not ids then
    return plan
  end
  local wanted, left = {}, 0
  for _, id in ipairs(ids) do
    left = left + (wanted[id] and 0 or 1)
    wanted[id] = true
  end
  local out = { files = {}, total = 0, passed = plan.passed }
  for _, each in ipairs(plan.files) do
    local list = vim.tbl_filter(function(occurrence)
      return wanted[occurrence.id] == true
    end, each.occurrences)
    if #list > 0 then
      table.insert(out.files, { file = each.file, occurrences = list })
      out.total = out.total + #list
    end
  end
  if out.total ~= left then
    local text =
      'ids: %d of %d are not there any more, the text has changed; nothing was replaced, make a dry run again'
    return nil, errors.new('stale', text:format(left - out.total, left))
  end
  return out
end

---@param each mcp-tools.ReplaceFile
---@return mcp-tools.Edit[]
local function edits_of(each)
  return vim.tbl_map(function(occurrence)
    local match = occurrence.match
    return {
      start_line = match.row,
      start_col = match.col,
      end_line = match.end_row,
      end_col = match.end_col,
      text = occurrence.new,
    }
  end, each.occurrences)
end

--- The buffer of a file, whose text is still the one that was searched.
---@param ctx mcp-tools.Ctx
---@param file mcp-tools.search.File
---@return mcp-tools.FileEdits?
---@return mcp-tools.Error? err
---@return integer|false|nil new its number, when it was loaded for this
local function ready(ctx, file)
  local bufnr, err, new = file.bufnr, nil, nil
  if not bufnr then
    bufnr, err, new = ctx:await(function(done)
      open.load(file.path, done, ctx)
    end)
  end
  if not bufnr then
    return nil, err
  end
  ctx:await(function(done)
    disk.refresh(bufnr, done)
  end)
  local text = api.nvim_buf_is_loaded(bufnr) and table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n') or ''
  if text ~= file.text:gsub('\n$', '') then
    if new then
      open.drop(bufnr)
    end
    local fault = '%s has changed while it was looked at; nothing was replaced, make a dry run again'
    return nil, errors.new('stale', fault:format(file.shown))
  end
  return {
    bufnr = bufnr,
    edits = {},
    changedtick = api.nvim_buf_get_changedtick(bufnr),
    write = buffers.is_unseen(bufnr),
  },
    nil,
    new and bufnr
end

--- Replaces what was chosen: all of it, or nothing.
---@param ctx mcp-tools.Ctx in a coroutine
---@param plan mcp-tools.ReplacePlan
---@return mcp-tools.FileEdited[]? in the order of the plan
---@return mcp-tools.Error? err
function M.apply(ctx, plan)
  local items, loaded = {}, {}
  local function dropped(err)
    for _, bufnr in ipairs(loaded) do
      open.drop(bufnr)
    end
    return nil, err
  end
  for i, each in ipairs(plan.files) do
    local item, err, new = ready(ctx, each.file)
    if not item then
      return dropped(err)
    end
    table.insert(loaded, new or nil)
    item.edits = edits_of(each)
    items[i] = item
    ctx:progress(i, #plan.files)
  end
  local files, err = ctx:await(function(done)
    edit.apply_all(items, { ctx = ctx }, done)
  end)
  if not files then
    return dropped(err)
  end
  return files
end

-- What the person sees beforehand: that of the last dry run --------------------------------------------------------

---@type { key: string, plan: mcp-tools.ReplacePlan }?
local last

---@param args mcp-tools.ReplaceArgs
---@return string
local function key_of(args)
  local list = {}
  for _, name in ipairs({ 'query', 'replacement', 'path', 'globs', 'regex', 'ignore_case', 'word' }) do
    table.insert(list, vim.inspect(args[name] or false))
  end
  return table.concat(list, '\n')
end

--- Keeps a dry run for the preview of what follows it.
---@param args mcp-tools.ReplaceArgs
---@param plan mcp-tools.ReplacePlan
function M.remember(args, plan)
  local size = 0
  for _, each in ipairs(plan.files) do
    size = size + #each.file.text
  end
  last = size <= MAX_KEPT and { key = key_of(args), plan = plan } or nil
end

--- What is replaced has to be counted before.
---@param args { dry_run: boolean?, expected_count: integer? }
---@return mcp-tools.Error?
function M.uncounted(args)
  if not args.dry_run and not args.expected_count then
    local text = 'expected_count: say how many are to be replaced; a dry run counts them'
    return errors.new('validation_error', text)
  end
end

--- Why a plan is not what was counted.
---@param plan mcp-tools.ReplacePlan
---@param args { expected_count: integer }
---@return mcp-tools.Error?
function M.miscounted(plan, args)
  if plan.total ~= args.expected_count then
    local text = 'expected_count is %d, but there are %d; nothing was replaced, make a dry run again'
    return errors.new('stale', text:format(args.expected_count, plan.total))
  end
end

--- The difference that a call would make.
---@param args mcp-tools.ReplaceArgs|{ ids: string[]? }
---@return string?
---@return mcp-tools.Error? err
function M.preview(args)
  local err = M.uncounted(args)
  if err then
    return nil, err
  elseif not last or last.key ~= key_of(args) then
    local text = 'dry_run: make a dry run with these arguments first, so that the person sees what would change'
    return nil, errors.new('validation_error', text)
  end
  local plan
  plan, err = M.chosen(last.plan, args.ids)
  err = plan and M.miscounted(plan, args) or err
  if not plan or err then
    return nil, err
  end
  local parts = {}
  for _, each in ipairs(plan.files) do
    local lines = vim.split((each.file.text:gsub('\n$', '')), '\n', { plain = true })
    local list = text_edits.ordered(edits_of(each), #lines, function(row)
      return lines[row + 1]
    end)
    local names = { old = 'a/' .. each.file.shown, new = 'b/' .. each.file.shown, context = 1 }
    table.insert(parts, list and (unified_diff.of(lines, text_edits.applied(lines, list), names)) or '')
  end
  return edit_preview.shown(table.concat(parts))
end

return M
