--- What git knows of the project, asked for without changing anything.
---
--- Receives: the root of the project, revisions as people write them.
--- Sends: names and diffs; nothing of sensitive files.
--- Does not know about: prompts. Nothing that the repository configures is run: no hooks, no external diffs, no
--- monitors. (Clean filters are git's own business and may run.)

local process = require('mcp-tools.editor.process')
local paths = require('mcp-tools.files.paths')

local M = {}

--- Diffs beyond this fit no model's context.
local MAX_DIFF = 256 * 1024

local BASE = {
  'git',
  '--no-optional-locks',
  '--literal-pathspecs',
  '-c',
  'core.fsmonitor=false',
  '-c',
  'core.hooksPath=/dev/null',
  '-c',
  'core.quotePath=false',
}

local DIFF = { 'diff', '--no-color', '--no-ext-diff', '--no-textconv', '--no-renames', '--ignore-submodules=dirty' }

---@param ctx mcp-tools.Ctx
---@param args string[]
---@param limit? integer
---@return mcp-tools.process.Result
local function git(ctx, args, limit)
  return process.await(vim.list_extend(vim.list_slice(BASE), args), { ctx = ctx, cwd = ctx.root, limit = limit })
end

---@param text string separated by NUL
---@return string[]
local function names(text)
  return vim.split(text, '\0', { plain = true, trimempty = true })
end

--- Is it the name of a revision, and nothing that git would take for an option or a range of files?
---@param revision string
---@return boolean
function M.is_revision(revision)
  return #revision <= 200 and revision:find('^[%w_@][%w%._/@{}~^-]*$') ~= nil
end

---@class mcp-tools.Changes
---@field diff string against the revision, staged or not
---@field cut boolean
---@field files string[] that the diff is about, relative to the root
---@field withheld string[] changed too, but sensitive
---@field untracked string[]

--- What has changed since a revision. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param revision string
---@param path? string resolved; only this file or folder
---@return mcp-tools.Changes?
---@return string? fault
function M.changes(ctx, revision, path)
  local limits = path and { '--', path } or { '--' }
  local listed = git(ctx, vim.iter({ DIFF, '--name-only', '-z', '--relative', revision, limits }):flatten():totable())
  if not listed.ok then
    return nil, listed.fault
  end
  local files, withheld = {}, {}
  for _, name in ipairs(names(listed.stdout)) do
    local place = ctx.root .. '/' .. name
    local hidden = paths.sensitive(place) or paths.sensitive(paths.resolve(place))
    table.insert(hidden and withheld or files, name)
  end
  local diff = { stdout = '', cut = false }
  if #files > 0 then
    -- Named one by one, so that what is withheld is not asked for in the first place.
    diff = git(ctx, vim.iter({ DIFF, '--relative', revision, '--', files }):flatten():totable(), MAX_DIFF)
    if not diff.ok then
      return nil, diff.fault
    end
  end
  local others = git(ctx, vim.list_extend({ 'ls-files', '-z', '--others', '--exclude-standard' }, limits))
  return {
    diff = diff.stdout,
    cut = diff.cut,
    files = files,
    withheld = withheld,
    untracked = others.ok and names(others.stdout) or {},
  }
end

--- Branch, and the short status of every file. In a coroutine.
---@param ctx mcp-tools.Ctx
---@return string? text
---@return string? fault
function M.status(ctx)
  local done = git(ctx, { 'status', '--short', '--branch', '--untracked-files=normal' }, 16 * 1024)
  return done.ok and done.stdout or nil, done.fault
end

--- Completion of revisions: branches and tags.
---@param ctx mcp-tools.Ctx
---@param prefix string
function M.complete_revision(ctx, prefix)
  local command = vim.list_extend(vim.list_slice(BASE), {
    'for-each-ref',
    '--format=%(refname:short)',
    '--sort=-committerdate',
    'refs/heads',
    'refs/tags',
    'refs/remotes',
  })
  process.run(command, { ctx = ctx, cwd = ctx.root, limit = 64 * 1024 }, function(done)
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
