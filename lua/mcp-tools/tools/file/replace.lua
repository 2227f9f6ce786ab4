--- Text replaced in many files, all or none.

local result = require('mcp-tools.editor.result')
local matches_text = require('mcp-tools.editor.search.matches_text')
local redact = require('mcp-tools.privacy.redact')
local replace = require('mcp-tools.editor.search.replace')
local time_slice = require('mcp-tools.util.time_slice')

--- Maximum number of files that the answer to a replacement names.
local MAX_NAMED = 20
--- Files that were written are named up to this number of them.
local MAX_FEW = 5

---@param plan mcp-tools.ReplacePlan
---@param opts { limit: integer, offset: integer }
---@param with 'text'|'ids'
---@param regex boolean
---@param pause fun()
---@return string[]
local function rows(plan, opts, with, regex, pause)
  local out, passed, column_of = {}, 0, matches_text.columns()
  for _, each in ipairs(plan.files) do
    local named = false
    for _, one in ipairs(each.occurrences) do
      if passed >= opts.offset and passed < opts.offset + opts.limit then
        if not named then
          table.insert(out, each.file.shown .. (each.file.unsaved and ' (unsaved)' or ''))
          named = true
        end
        local text = with == 'text' and ': ' .. matches_text.shown(one.line, one.col) or ''
        if text ~= '' and regex then
          text = text .. ' → ' .. matches_text.shown(one.new)
        end
        table.insert(out, ('  %s %d:%d%s'):format(one.id, one.row + 1, column_of(one.line, one.col), text))
        pause()
      end
      passed = passed + 1
    end
  end
  return out
end

--- The answer to a dry run.
---@param plan mcp-tools.ReplacePlan
---@param args { limit: integer, offset: integer, regex: boolean }
---@param pause fun() called between pieces of work
---@return string
local function list_text(plan, args, pause)
  local head = ('%d occurrences in %d files, nothing replaced yet'):format(plan.total, #plan.files)
  if plan.total > 0 then
    head = ('%s; apply with expected_count=%d, or with ids of some'):format(head, plan.total)
  end
  local last = math.min(args.offset + args.limit, plan.total)
  if args.offset > 0 or last < plan.total then
    head = ('%s; %d-%d shown'):format(head, math.min(args.offset + 1, last), last)
    head = head .. (last < plan.total and (', offset=%d goes on'):format(last) or '')
  end
  if plan.skipped > 0 then
    head = ('%s; %d files are too large to be searched'):format(head, plan.skipped)
  end
  local function variant(with, without)
    return {
      without = without,
      text = function()
        local list = rows(plan, args, with, args.regex, pause)
        table.insert(list, 1, head)
        return table.concat(list, '\n')
      end,
    }
  end
  return result.longest({
    variant('text'),
    variant('ids', 'the text of the lines'),
    {
      without = 'ids, so counts per file',
      text = function()
        local list = { head }
        for _, each in ipairs(plan.files) do
          table.insert(list, ('%s: %d'):format(each.file.shown, #each.occurrences))
        end
        return table.concat(list, '\n')
      end,
    },
    {
      without = 'files to be named, so the total',
      text = function()
        return head
      end,
    },
  }, 'narrow it with path, globs or limit')
end

--- The answer to what was done.
---@param plan mcp-tools.ReplacePlan
---@param files mcp-tools.FilesEdited
---@return string
local function done_text(plan, files)
  local list = { ('%d occurrences replaced in %d files'):format(plan.total, #plan.files) }
  if files.rejected or files.edited then
    list[1] = ('%d occurrences in %d files, as far as the person accepted them'):format(plan.total, #plan.files)
  end
  local named, others = {}, {}
  for i, each in ipairs(plan.files) do
    local state = files[i].written and '' or #files[i].hunks == 0 and ', unchanged' or ', open and not saved'
    table.insert(state == '' and others or named, ('%s: %d%s'):format(each.file.shown, #each.occurrences, state))
  end
  -- What is not on the disk comes first; many files that are say little.
  vim.list_extend(named, #others <= MAX_FEW and others or {})
  vim.list_extend(list, named, 1, math.min(#named, MAX_NAMED))
  if #named > MAX_NAMED then
    table.insert(list, ('and %d more files that are not saved or unchanged'):format(#named - MAX_NAMED))
  end
  for _, each in ipairs(files.rejected or {}) do
    local reason = each.reason and ': ' .. each.reason or ''
    table.insert(list, ('rejected: %s:%d%s'):format(each.path, each.line, reason))
  end
  return table.concat(list, '\n')
end

return {
  name = 'file_replace',
  title = 'Replace in files',
  description = 'Replaces text in many files. With expected_count it replaces all of them at once, or nothing where the'
    .. ' number differs; without, it is a dry run that changes nothing and lists occurrences as `id line:column: text`.'
    .. ' ids select some of them. One undo block per file; open files are left unsaved.',
  args = {
    query = { type = 'string', description = 'Text to find, plain unless regex', required = true, minLength = 1 },
    replacement = {
      type = 'string',
      description = 'What takes its place; with regex $1 to $9 are groups, $0 all, $$ a dollar',
      required = true,
    },
    path = { type = 'string', description = 'File or folder; default: the project' },
    globs = {
      type = 'array',
      items = { type = 'string', maxLength = 500 },
      description = 'Only such files, as `*.lua` or `src/**`; with ! before it without them',
    },
    regex = {
      type = 'boolean',
      description = 'query is a regular expression (ripgrep syntax), matched line by line',
      default = false,
    },
    ignore_case = { type = 'boolean', description = 'Capital and small letters are alike', default = false },
    word = { type = 'boolean', description = 'Whole words only', default = false },
    dry_run = {
      type = 'boolean',
      description = 'List what would be replaced without changing it; default: true without expected_count',
    },
    ids = { type = 'array', items = { type = 'string' }, description = 'Only these occurrences', maxItems = 10000 },
    expected_count = {
      type = 'integer',
      description = 'Number of occurrences to be replaced; needed to replace',
      minimum = 0,
    },
    limit = { type = 'integer', description = 'List at most so many', default = 200, minimum = 1, maximum = 5000 },
    offset = { type = 'integer', description = 'Occurrences to pass over in the list', default = 0, minimum = 0 },
  },
  annotations = { read_only = false, destructive = true, idempotent = false },
  needs_approval = function(args)
    return not replace.is_dry_run(args) and 'it changes files'
  end,
  preview = replace.preview,
  reviewed = true,
  run = function(ctx, args)
    local err = replace.uncounted(args)
    local plan, files
    if not err and replace.is_dry_run(args) then
      plan, err = replace.plan(ctx, args)
      if plan then
        local pause = time_slice.of(ctx)
        redact.refresh(pause)
        return list_text(plan, args, pause)
      end
    elseif not err then
      plan, err = replace.counted(ctx, args)
    end
    if plan and not err then
      files, err = replace.apply(ctx, plan)
    end
    if not files then
      return nil, err
    end
    return done_text(plan, files)
  end,
}
