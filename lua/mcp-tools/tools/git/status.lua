--- Returns the changed files of the working tree, and the state of the branch.

local arguments = require('mcp-tools.editor.arguments')
local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local repository = require('mcp-tools.editor.git.repository')
local result = require('mcp-tools.editor.result')
local revision = require('mcp-tools.editor.git.revision')

--- Files in the repository's git directory that exist during an operation.
local OPERATIONS = {
  { 'rebase-merge', 'rebase' },
  { 'rebase-apply', 'rebase' },
  { 'MERGE_HEAD', 'merge' },
  { 'CHERRY_PICK_HEAD', 'cherry-pick' },
  { 'REVERT_HEAD', 'revert' },
  { 'BISECT_LOG', 'bisect' },
}

--- Returns the operation that is in progress.
---@param git_dir string
---@return string?
local function operation_in(git_dir)
  for _, each in ipairs(OPERATIONS) do
    if vim.uv.fs_stat(git_dir .. '/' .. each[1]) then
      return each[2]
    end
  end
end

return {
  name = 'git_status',
  title = 'Git status',
  description = 'Returns the branch, an unfinished merge or rebase, and the changed files, also those that are only'
    .. ' changed in the editor.',
  search_hint = 'changed files, branch, untracked, staged, ahead, behind',
  args = {
    path = { type = 'string', description = 'File or directory' },
    limit = arguments.hidden(arguments.limit('files', 200, 5000)),
    offset = { type = 'integer', description = 'Number of files to skip', default = 0, minimum = 0, hidden = true },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place = errors.unwrap(revision.place(ctx, args))
    local command = { 'status', '--short', '--branch', '--untracked-files=normal', '--', place.path or '.' }
    local done = revision.ask(ctx, command)
    if not done.ok then
      return nil, revision.error_of(done.fault)
    end
    local lines = vim.split(done.stdout:match('^.*\n') or '', '\n', { plain = true, trimempty = true })
    local branch = table.remove(lines, 1):sub(4)
    local files, about = result.page(lines, args)
    local answer = { branch = branch, files = files, cut = done.cut or nil }
    answer.operation = operation_in(assert(repository.find(ctx.root)).gitdir)
    answer.unsaved = buffers.unsaved(ctx.root, place.path)
    return result.utf8(vim.tbl_extend('error', answer, about))
  end,
  render = function(value, args)
    local head = value.operation and ('%s; %s in progress'):format(value.branch, value.operation) or value.branch
    head = ('%s; %s'):format(head, value.total == 0 and 'no changes' or result.count(value.total, 'file'))
    head = result.with_range(value.cut and head .. ' or more, give path' or head, args, value.total)
    local rows = vim.list_extend({ head }, value.files)
    for _, path in ipairs(value.unsaved or {}) do
      table.insert(rows, 'unsaved in the editor: ' .. path)
    end
    return table.concat(rows, '\n')
  end,
}
