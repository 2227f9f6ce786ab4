--- Prompt: review changes.

local background = require('mcp-tools.editor.background')
local git = require('mcp-tools.editor.git')
local git_diff = require('mcp-tools.editor.git.diff')
local path_completion = require('mcp-tools.privacy.completion')
local access = require('mcp-tools.privacy.access')
local excerpt = require('mcp-tools.editor.result.excerpt')
local trim = require('mcp-tools.util.trim')
local buffers = require('mcp-tools.editor.buffer')
local revision = require('mcp-tools.editor.git.revision')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum number of names in a list.
local MAX_NAMES = 50
--- Maximum size of the diff in bytes.
local MAX_DIFF = 256 * 1024

---@param lines string[]
---@param label string
---@param names string[]
local function add(lines, label, names)
  if #names == 0 then
    return
  end
  local shown = table.concat(names, ', ', 1, math.min(#names, MAX_NAMES)):gsub('%c', '?')
  local more = #names > MAX_NAMES and (' and %d more'):format(#names - MAX_NAMES) or ''
  table.insert(lines, ('%s: %s%s'):format(label, shown, more))
end

--- Completes branches and tags.
---@param ctx mcp-tools.Ctx
---@param prefix string
local function complete_revision(ctx, prefix)
  local args = { 'for-each-ref', '--format=%(refname:short)', '--sort=-committerdate' }
  vim.list_extend(args, { 'refs/heads', 'refs/tags', 'refs/remotes' })
  background.run(function(task)
    return git.await(args, { ctx = task, cwd = ctx.root, limit = 64 * 1024 })
  end, function(done)
    ctx(vim.tbl_filter(function(name)
      return vim.startswith(name, prefix) and revision.is_name(name)
    end, vim.split('HEAD\n' .. done.stdout, '\n', { trimempty = true })))
  end)
end

---@class mcp-tools.Changes
---@field diff string against the revision, staged or not
---@field cut boolean|string
---@field withheld string[] changed files that must not be shown
---@field untracked string[]

--- Returns the changes since a revision.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param base string
---@param path? string resolved; only this file or directory
---@return mcp-tools.Changes?
---@return string? fault
local function changes_since(ctx, base, path)
  local commit, unknown = revision.commit(ctx, base)
  if not commit then
    return nil, unknown
  end
  local command = { 'diff', commit }
  local found, fault = git_diff.files(ctx, command, path)
  if not found then
    return nil, fault
  end
  local text, cut = git_diff.text(ctx, command, found.files, MAX_DIFF)
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

return {
  name = 'review_changes',
  title = 'Review changes',
  description = 'Reviews what has changed in the working tree since a revision (git diff).',
  args = {
    {
      name = 'base',
      description = 'Revision to compare with (default: HEAD)',
      complete = complete_revision,
    },
    { name = 'path', description = 'File or directory (default: the project)', complete = path_completion.project },
  },
  run = function(ctx, args)
    local base = args.base or 'HEAD'
    if not revision.is_name(base) then
      return ctx:fail('validation_error', ('base: invalid revision %s'):format(base))
    end
    local place, why = access.prompt_path(args.path, ctx.root)
    if not place then
      return ctx:fail('not_found', why)
    end
    local changes, fault = changes_since(ctx, base, args.path and place)
    if not changes then
      return ctx:fail('tool_error', 'cannot read the changes: ' .. fault)
    end
    local about = {}
    add(about, 'Not tracked by git, and not in the diff', changes.untracked)
    add(about, 'Changed, but not shown because they contain secrets', changes.withheld)
    add(about, 'With unsaved changes in the editor, which the diff does not contain', buffers.unsaved(ctx.root) or {})
    if changes.cut then
      table.insert(about, 'The diff is cut; use the argument path to get a part of it.')
    end
    local notes = #about > 0 and '\n\n' .. utf8.repair(table.concat(about, '\n')) or ''
    if changes.diff == '' then
      return ('Nothing that git tracks has changed since %s.%s\n\nTell me that.'):format(base, notes)
    end
    local text = 'Review these changes of my working tree against %s: mistakes first, then what is unclear or missing'
      .. ' (tests, error paths, documentation). Name file and line, and say what you would do instead.%s\n\n%s'
    local diff = utf8.repair(trim(changes.diff))
    return text:format(base, notes, excerpt.fenced(diff, 'diff'))
  end,
}
