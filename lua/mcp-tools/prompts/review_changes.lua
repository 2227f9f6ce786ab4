--- Prompt: review changes.

local git_changes = require('mcp-tools.editor.git.changes')
local path_completion = require('mcp-tools.privacy.completion')
local access = require('mcp-tools.privacy.access')
local excerpt = require('mcp-tools.editor.result.excerpt')
local trim = require('mcp-tools.util.trim')
local buffers = require('mcp-tools.editor.buffer')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum number of names in a list.
local MAX_NAMES = 50

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

return {
  name = 'review_changes',
  title = 'Review changes',
  description = 'Reviews what has changed in the working tree since a revision (git diff).',
  args = {
    {
      name = 'base',
      description = 'The revision to compare with; HEAD when left out',
      complete = git_changes.complete_revision,
    },
    { name = 'path', description = 'Only this file or folder', complete = path_completion.project },
  },
  run = function(ctx, args)
    local base = args.base or 'HEAD'
    if not git_changes.is_revision(base) then
      return ctx:fail('validation_error', ('base: invalid revision %s'):format(base))
    end
    local place, why = access.place(args.path, ctx.root)
    if not place then
      return ctx:fail('not_found', why)
    end
    local changes, fault = git_changes.changes(ctx, base, args.path and place)
    if not changes then
      return ctx:fail('tool_error', 'cannot read the changes: ' .. fault)
    end
    local about = {}
    add(about, 'Not tracked by git, and not in the diff', changes.untracked)
    add(about, 'Changed, but not shown because they hold secrets', changes.withheld)
    add(about, 'With unsaved changes in the editor, which the diff does not have', buffers.unsaved(ctx.root) or {})
    if changes.cut then
      table.insert(about, 'The diff is cut; ask for a part of it by the argument path.')
    end
    local notes = #about > 0 and '\n\n' .. utf8.repair(table.concat(about, '\n')) or ''
    if changes.diff == '' then
      return ('Nothing that git tracks has changed since %s.%s\n\nTell me so.'):format(base, notes)
    end
    local text = 'Review these changes of my working tree against %s: mistakes first, then what is unclear or missing'
      .. ' (tests, error paths, documentation). Name file and line, and say what you would do instead.%s\n\n%s'
    local diff = utf8.repair(trim(changes.diff))
    return text:format(base, notes, excerpt.fenced(diff, 'diff'))
  end,
}
