--- Returns the difference between commits, the index and the working tree.

local diff = require('mcp-tools.editor.git.diff')
local errors = require('mcp-tools.errors')
local revision = require('mcp-tools.editor.git.revision')
local buffers = require('mcp-tools.editor.buffer')

local ARGS = {
  staged = { type = 'boolean', description = 'Compare the index with base', default = false },
  base = { type = 'string', description = 'Commit or branch; default: the index' },
  target = { type = 'string', description = 'Commit; default: the working tree' },
  merge_base = { type = 'boolean', description = 'Compare from the merge base', default = false },
}

--- Returns the git command that compares what the arguments name.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return string[]? command
---@return mcp-tools.Error? err
local function command_of(ctx, args)
  if args.target and (args.staged or not args.base) then
    return nil, errors.new('validation_error', 'target: needs base, and cannot be combined with staged')
  elseif args.merge_base and not args.base then
    return nil, errors.new('validation_error', 'merge_base: needs base')
  end
  local command = { 'diff' }
  if args.staged then
    table.insert(command, '--cached')
  end
  if args.merge_base then
    table.insert(command, '--merge-base')
  end
  for _, name in ipairs({ 'base', 'target' }) do
    table.insert(command, revision.of_argument(ctx, args, name))
  end
  return command
end

return {
  name = 'git_diff',
  title = 'Git diff',
  description = 'Returns changes as a diff: of the working tree or the index, or between commits.',
  search_hint = 'changes, what changed, staged, compare branches, pull request',
  args = vim.tbl_extend('error', ARGS, diff.ARGS),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place = errors.unwrap(revision.place(ctx, args))
    local fields, fault = diff.answer(ctx, errors.unwrap(command_of(ctx, args)), args, place.path)
    if not fields then
      return nil, revision.error_of(fault --[[@as string]])
    end
    if not args.target and not args.staged then
      fields.unsaved = buffers.unsaved(ctx.root, place.path)
    end
    return fields
  end,
  render = diff.render,
}
