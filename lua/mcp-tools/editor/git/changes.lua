--- Changes, status and revisions of the project, from git.

local diff = require('mcp-tools.editor.git.diff')
local git = require('mcp-tools.editor.git')
local revision = require('mcp-tools.editor.git.revision')

local M = {}

--- Maximum size of a diff, bytes.
local MAX_DIFF = 256 * 1024

--- Whether a text is the name of one revision, and not an option or a range.
M.is_revision = revision.is_name

---@class mcp-tools.Changes
---@field diff string against the revision, staged or not
---@field cut boolean
---@field withheld string[] changed files that must not be shown
---@field untracked string[]

--- Returns the changes since a revision. Call it in a coroutine.
---@param ctx mcp-tools.Ctx
---@param base string
---@param path? string resolved; only this file or directory
---@return mcp-tools.Changes?
---@return string? fault
function M.changes(ctx, base, path)
  local commit, unknown = revision.commit(ctx, base)
  if not commit then
    return nil, unknown
  end
  local command = { 'diff', commit }
  local found, fault = diff.files(ctx, command, path)
  if not found then
    return nil, fault
  end
  local text, cut = diff.text(ctx, command, found.files, MAX_DIFF)
  if not text then
    return nil, cut --[[@as string]]
  end
  local others = revision.ask(ctx, { 'ls-files', '-z', '--others', '--exclude-standard', '--', path })
  return {
    diff = text,
    cut = cut or found.cut,
    withheld = found.withheld,
    untracked = revision.entries(others.stdout),
  }
end

--- Returns the branch and the short status of every file. Call it in a coroutine.
---@param ctx mcp-tools.Ctx
---@return string? text
---@return string? fault
function M.status(ctx)
  local done = revision.ask(ctx, { 'status', '--short', '--branch', '--untracked-files=normal', '--', '.' }, 16 * 1024)
  return done.ok and done.stdout or nil, done.fault
end

--- Completes branches and tags.
---@param ctx mcp-tools.Ctx
---@param prefix string
function M.complete_revision(ctx, prefix)
  local args = { 'for-each-ref', '--format=%(refname:short)', '--sort=-committerdate' }
  vim.list_extend(args, { 'refs/heads', 'refs/tags', 'refs/remotes' })
  git.run(args, { ctx = ctx, cwd = ctx.root, limit = 64 * 1024 }, function(done)
    local values = {}
    for _, name in ipairs(vim.split('HEAD\n' .. done.stdout, '\n', { trimempty = true })) do
      if vim.startswith(name, prefix) and M.is_revision(name) then
        table.insert(values, name)
      end
    end
    ctx(values)
  end)
end

return M
