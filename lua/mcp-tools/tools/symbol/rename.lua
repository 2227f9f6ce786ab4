--- Renames a symbol in the whole project.

local args_of = require('mcp-tools.editor.lsp.args')
local arguments = require('mcp-tools.editor.arguments')
local errors = require('mcp-tools.errors')
local find = require('mcp-tools.editor.symbol.find')
local rename = require('mcp-tools.editor.lsp.rename')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
local function run(ctx, args)
  local spot = errors.unwrap(find.spot(ctx, args))
  return rename.run(ctx, args, spot)
end

return {
  name = 'symbol_rename',
  title = 'Rename symbol',
  description = 'Renames a symbol in the whole project through the language server, all files or none; refuses a name'
    .. ' that is taken. Open files stay unsaved. With `preview` it only returns what would change.',
  search_hint = 'rename refactoring, change the name of a function, class or variable',
  args = args_of.symbol({
    new_name = { type = 'string', description = 'New name', required = true, minLength = 1, maxLength = 200 },
    preview = { type = 'boolean', description = 'Only return the diff', default = false },
    timeout_ms = arguments.timeout(20000),
  }),
  annotations = { read_only = false, destructive = true },
  needs_approval = function(args)
    return not args.preview and 'it changes files of the project'
  end,
  preview = function(args, again)
    return rename.preview(args, run, again)
  end,
  reviewed = true,
  recommended = true,
  always_load = true,
  run = run,
  render = function(value, args)
    local done = args.preview and '%s would become %s' or '%s is now %s'
    local head = done:format(value.old_name, value.new_name)
    return workspace_edit.text(value, value.checked and ('%s; checked: %s'):format(head, value.checked) or head)
  end,
}
