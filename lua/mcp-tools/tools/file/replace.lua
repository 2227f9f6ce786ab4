--- Text replaced in many files, all or none.

local redact = require('mcp-tools.files.redact')
local replace = require('mcp-tools.editor.search.replace')
local replace_text = require('mcp-tools.editor.search.replace_text')
local time_slice = require('mcp-tools.util.time_slice')

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
        return replace_text.dry(plan, args, pause)
      end
    elseif not err then
      plan, err = replace.counted(ctx, args)
    end
    if plan and not err then
      files, err = replace.apply(ctx, plan)
    end
    if not files then
      return ctx(nil, err)
    end
    return replace_text.done(plan, files)
  end,
}
