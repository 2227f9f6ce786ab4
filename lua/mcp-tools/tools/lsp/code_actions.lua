--- Lists code actions at a position, and applies one by id.

local args = require('mcp-tools.editor.lsp.args')
local code_actions = require('mcp-tools.editor.lsp.code_actions')

return {
  name = 'lsp_code_actions',
  title = 'Code actions',
  description = 'Quick fixes and refactorings at a place, or for lines up to end_line: {actions: [{id, title, kind}]}.'
    .. ' apply = id does one: {title, places, files}; with dry_run only its diff. Open files stay unsaved.',
  args = args.place({
    end_line = { type = 'integer', description = 'Last line of what it is about', minimum = 1 },
    kinds = {
      type = 'array',
      items = { type = 'string' },
      description = 'Only these, such as quickfix, refactor, source.organizeImports',
    },
    limit = {
      type = 'integer',
      description = 'Maximum number of actions',
      default = 100,
      minimum = 1,
      maximum = code_actions.MAX_LISTED,
    },
    apply = { type = 'string', description = 'Id of the action to do; nothing else is needed then' },
    dry_run = { type = 'boolean', description = 'With apply: only show the diff', default = false },
  }),
  annotations = { read_only = false, destructive = false },
  needs_approval = function(given)
    return given.apply ~= nil and not given.dry_run and 'it changes files of the project'
  end,
  preview = function(given)
    return code_actions.preview(given.apply)
  end,
  run = function(ctx, given)
    local answer, err
    if given.apply then
      answer, err = code_actions.apply(ctx, given.apply, given.dry_run)
    else
      answer, err = code_actions.list(ctx, given)
    end
    if err then
      return nil, err
    end
    return answer
  end,
}
