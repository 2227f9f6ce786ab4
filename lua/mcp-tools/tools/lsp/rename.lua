--- Renames the symbol at a position in the whole project.

local args = require('mcp-tools.editor.lsp.args')
local rename = require('mcp-tools.editor.lsp.rename')

return {
  name = 'lsp_rename',
  title = 'Rename a symbol',
  description = 'Renames the symbol at a position in the whole project, atomically, and checks that no reference to'
    .. ' the old name is left. Open files stay unsaved; closed ones are written.',
  args = args.place({
    new_name = { type = 'string', description = 'The new name', required = true, minLength = 1, maxLength = 200 },
    dry_run = { type = 'boolean', description = 'Only show the diff', default = false },
    wait_ms = {
      type = 'integer',
      description = 'Maximum time to wait for a server that is indexing',
      default = 20000,
      minimum = 0,
      maximum = 240000,
    },
  }),
  annotations = { read_only = false, destructive = false },
  needs_approval = function(given)
    return not given.dry_run and 'it changes files of the project'
  end,
  preview = rename.preview,
  reviewed = true,
  recommended = true,
  run = rename.run,
}
