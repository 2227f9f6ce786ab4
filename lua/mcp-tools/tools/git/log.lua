--- Lists the commits of the project, or of a file.

local arguments = require('mcp-tools.editor.arguments')
local errors = require('mcp-tools.errors')
local revision = require('mcp-tools.editor.git.revision')

--- Returns the arguments of `git log`: the range of commits and the filters.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return string[]
local function command_of(ctx, args)
  local list = { '--max-count=' .. args.limit + 1, '--skip=' .. args.offset }
  for _, name in ipairs({ 'author', 'grep', 'since' }) do
    if args[name] then
      table.insert(list, ('--%s=%s'):format(name, args[name]))
    end
  end
  if args.grep then
    table.insert(list, '--regexp-ignore-case')
  end
  table.insert(list, revision.of_argument(ctx, args, 'revision'))
  local base = revision.of_argument(ctx, args, 'base')
  table.insert(list, base and '^' .. base)
  return list
end

return {
  name = 'git_log',
  title = 'Git log',
  description = 'Lists commits, newest first: id, date, author, subject.',
  search_hint = 'history, commits of a file, who changed it when',
  args = {
    path = { type = 'string', description = 'File or directory' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0, hidden = true },
    revision = { type = 'string', description = 'Commit or branch', default = 'HEAD' },
    base = { type = 'string', description = 'Branch whose commits are left out' },
    author = { type = 'string', description = 'Pattern for the author' },
    grep = { type = 'string', description = 'Pattern for the message' },
    since = { type = 'string', description = 'Date, such as "2 weeks ago"' },
    limit = arguments.limit('commits', 20, 500),
    offset = { type = 'integer', description = 'Number of commits to skip', default = 0, minimum = 0, hidden = true },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place = errors.unwrap(revision.place(ctx, args))
    local commits, fault, cut = revision.log(ctx, command_of(ctx, args), place.path)
    if not commits then
      return nil, revision.error_of(fault --[[@as string]])
    end
    local more = #commits > args.limit
    if more then
      table.remove(commits)
    end
    for _, commit in ipairs(commits) do
      commit.commit = commit.commit:sub(1, 12)
      commit.parents, commit.body = nil, nil
    end
    return { commits = commits, next_offset = (more or cut) and args.offset + #commits or nil }
  end,
  render = function(value)
    local rows = { value.next_offset and ('cut; offset=%d continues'):format(value.next_offset) }
    for _, commit in ipairs(value.commits) do
      local refs = commit.refs and (' (%s)'):format(commit.refs) or ''
      table.insert(rows, ('%s %s %s:%s %s'):format(commit.commit, commit.date, commit.author, refs, commit.subject))
    end
    return #rows > 0 and table.concat(rows, '\n') or 'no commits'
  end,
}
