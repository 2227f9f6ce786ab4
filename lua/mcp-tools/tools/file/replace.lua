--- Text replaced in many files, all or none.

local redact = require('mcp-tools.files.redact')
local replace = require('mcp-tools.editor.search.replace')
local replace_text = require('mcp-tools.editor.search.replace_text')
local time_slice = require('mcp-tools.util.time_slice')

return {
  name = 'file_replace',
  title = 'Replace in files',
  description = 'Replaces text in many files. First a dry run, which lists occurrences as `id line:column: text`; then'
    .. ' dry_run=false with expected_count, and ids for some of them. Nothing is replaced when the count or an id does'
    .. ' not fit. One undo block per file; open files are left unsaved.',
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
    regex = { type = 'boolean', description = 'query is a regular expression for single lines', default = false },
    ignore_case = { type = 'boolean', description = 'Capital and small letters are alike', default = false },
    word = { type = 'boolean', description = 'Whole words only', default = false },
    dry_run = { type = 'boolean', description = 'Only list what would be replaced', default = true },
    ids = { type = 'array', items = { type = 'string' }, description = 'Only these occurrences', maxItems = 10000 },
    expected_count = {
      type = 'integer',
      description = 'How many are replaced; needed unless dry_run',
      minimum = 0,
    },
    limit = { type = 'integer', description = 'List at most so many', default = 200, minimum = 1, maximum = 5000 },
    offset = { type = 'integer', description = 'Occurrences to pass over in the list', default = 0, minimum = 0 },
  },
  annotations = { read_only = false, destructive = true, idempotent = false },
  needs_approval = function(args)
    return args.dry_run == false and 'it changes files'
  end,
  preview = replace.preview,
  reviewed = true,
  run = function(ctx, args)
    local uncounted = replace.uncounted(args)
    if uncounted then
      return ctx(nil, uncounted)
    end
    local plan, err = replace.plan(ctx, args)
    if plan and args.dry_run then
      replace.remember(args, plan)
      redact.refresh(time_slice.of(ctx))
      return replace_text.dry(plan, args)
    end
    local files
    if plan then
      plan, err = replace.chosen(plan, args.ids)
    end
    if plan then
      err = replace.miscounted(plan, args)
    end
    if plan and not err then
      files, err = replace.apply(ctx, plan)
    end
    if not plan or not files then
      return ctx(nil, err)
    end
    return replace_text.done(plan, files)
  end,
}
