--- Deletes a symbol that is not used.

local answer = require('mcp-tools.editor.diagnostics.edit_answer')
local change = require('mcp-tools.editor.symbol.change')
local edits = require('mcp-tools.editor.symbol.edits')
local errors = require('mcp-tools.errors')
local find = require('mcp-tools.editor.symbol.find')
local references = require('mcp-tools.editor.symbol.references')

--- Maximum number of listed references.
local MAX_LISTED = 50

--- Refuses to delete a symbol that is used, or may be.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param found mcp-tools.PickedSymbol
---@param list mcp-tools.Edit[]
---@return mcp-tools.Error?
local function refusal(ctx, found, list)
  local own = { first = list[1].start_line + 1, last = list[1].end_line }
  local users, err = references.find(ctx, find.spot_of(found), found, own)
  if not users then
    return err
  elseif users.incomplete then
    local text = 'it is not known whether %s is used: %s; nothing was deleted, try again'
    return errors.new('busy', text:format(found.path, users.incomplete))
  elseif users.total > 0 then
    local text = '%s was not deleted: %s'
    local listed = references.text(users, { limit = MAX_LISTED, offset = 0 })
    return errors.new('tool_error', text:format(found.path, listed))
  end
end

local preview, run = change.handlers(edits.delete, refusal)

return {
  name = 'symbol_delete',
  title = 'Delete an unused symbol',
  description = 'Deletes a function, method or class with its decorators and comments. Refuses, and lists the uses,'
    .. ' when something still uses it.',
  search_hint = 'remove function, dead code, unused',
  args = change.args({}),
  annotations = { read_only = false, destructive = true, idempotent = false },
  recommended = true,
  needs_approval = 'it changes text',
  reviewed = true,
  preview = preview,
  run = run,
  render = answer.text,
}
