--- A commit, or a file as it was in one.

local diff_text = require('mcp-tools.editor.git.diff_text')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.editor.git.log')
local old_file = require('mcp-tools.editor.git.old_file')
local revision = require('mcp-tools.editor.git.revision')

local ARGS = {
  revision = { type = 'string', description = 'Commit, branch or tag', default = 'HEAD' },
  text = { type = 'boolean', description = 'The text of the file (path) as it was, not its changes', default = false },
  start_line = { type = 'integer', description = 'First line of the text', default = 1, minimum = 1 },
  limit = {
    type = 'integer',
    description = 'At most so many lines of it',
    default = 2000,
    minimum = 1,
    maximum = 100000,
  },
}

--- The commit with what it changed.
---@param ctx mcp-tools.Ctx
---@param args table
---@param commit string
---@param path string?
---@return table?
---@return string? fault
local function changes(ctx, args, commit, path)
  local about, unknown = log.one(ctx, commit)
  if not about then
    return nil, unknown
  end
  -- Of a merge what it brought to the branch that it was made on.
  local fields, fault = diff_text.of(ctx, { 'show', '--format=', '-m', '--first-parent', commit }, args, path)
  return fields and vim.tbl_extend('error', about, fields), fault
end

return {
  name = 'git_show',
  description = 'A commit: message, author, date and what it changed (of a merge: against its first parent). With'
    .. ' text=true and path: the file as it was then, lines from 1; when the answer has next_line there is more.'
    .. ' Sensitive files are withheld.',
  args = vim.tbl_extend('error', ARGS, diff_text.ARGS),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place, err = revision.place(ctx, args)
    if err then
      return ctx(nil, err)
    elseif args.text and not place.path then
      return ctx(nil, errors.new('validation_error', 'text: needs the path of a file'))
    end
    local commit, bad = revision.of_argument(ctx, args, 'revision')
    if not commit then
      return ctx(nil, bad)
    end
    local fields, fault
    if args.text then
      fields, fault = old_file.read(ctx, commit, place.path, args.start_line, args.limit)
    else
      fields, fault = changes(ctx, args, commit, place.path)
    end
    if not fields then
      return ctx(nil, type(fault) == 'table' and fault or revision.failed(fault --[[@as string]]))
    end
    return fields
  end,
}
