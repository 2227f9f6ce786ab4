--- Returns the difference between commits, the index and the working tree.

local diff = require('mcp-tools.editor.git.diff')
local errors = require('mcp-tools.errors')
local revision = require('mcp-tools.editor.git.revision')
local buffers = require('mcp-tools.editor.buffer')

local ARGS = {
  staged = { type = 'boolean', description = 'What is staged, against base (HEAD when left out)', default = false },
  base = { type = 'string', description = 'Commit, branch or tag to compare with; left out: what is staged' },
  target = { type = 'string', description = 'Commit to compare base with; left out: the working tree' },
  merge_base = {
    type = 'boolean',
    description = 'From where base and target (or HEAD) parted, as a pull request shows it',
    default = false,
  },
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
    local commit, err = revision.of_argument(ctx, args, name)
    if err then
      return nil, err
    end
    table.insert(command, commit)
  end
  return command
end

return {
  name = 'git_diff',
  title = 'Git diff',
  description = 'What differs: the working tree against what is staged, or against base; staged changes; two commits.'
    .. ' Each file is judged by itself, sensitive ones are withheld. Too much comes without context, then as counts per'
    .. " file. The editor's unsaved changes are not in it.",
  args = vim.tbl_extend('error', ARGS, diff.ARGS),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place, err = revision.place(ctx, args)
    if err then
      return nil, err
    end
    local command, bad = command_of(ctx, args)
    if not command then
      return nil, bad
    end
    local fields, fault = diff.answer(ctx, command, args, place.path)
    if not fields then
      return nil, revision.error_of(fault --[[@as string]])
    end
    if not args.target and not args.staged then
      fields.unsaved = buffers.unsaved(ctx.root, place.path)
    end
    return fields
  end,
}
