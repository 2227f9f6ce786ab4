--- Lists the commits of the project, or of a file.

local revision = require('mcp-tools.editor.git.revision')

--- Returns the arguments of `git log`: the range of commits and the filters.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return string[]? list
---@return mcp-tools.Error? err
local function arguments(ctx, args)
  local list = { '--max-count=' .. args.limit + 1, '--skip=' .. args.offset }
  for _, name in ipairs({ 'author', 'grep', 'since', 'until' }) do
    if args[name] then
      table.insert(list, ('--%s=%s'):format(name, args[name]))
    end
  end
  if args.grep then
    table.insert(list, '--regexp-ignore-case')
  end
  local tip, err = revision.of_argument(ctx, args, 'revision')
  if err then
    return nil, err
  end
  local base, bad = revision.of_argument(ctx, args, 'base')
  if bad then
    return nil, bad
  end
  table.insert(list, tip)
  if base then
    table.insert(list, '^' .. base)
  end
  return list
end

return {
  name = 'git_log',
  title = 'Git log',
  description = 'Lists commits, newest first: id, date, author, subject.',
  search_hint = 'history, commits of a file, who changed it when',
  args = {
    path = { type = 'string', description = 'File or directory' },
    bufnr = {
      type = 'integer',
      description = 'The same for the file of a buffer; 0 = current',
      minimum = 0,
      hidden = true,
    },
    revision = { type = 'string', description = 'Commit, branch or tag to start from', default = 'HEAD' },
    base = { type = 'string', description = 'Leave out commits that are in this one', hidden = true },
    author = { type = 'string', description = 'Pattern for the author', maxLength = 200 },
    grep = { type = 'string', description = 'Pattern for the message', maxLength = 200 },
    since = { type = 'string', description = 'Date, such as "2 weeks ago"', maxLength = 100 },
    ['until'] = { type = 'string', description = 'Date, such as yesterday', maxLength = 100, hidden = true },
    body = { type = 'boolean', description = 'Include the whole message', default = false, hidden = true },
    files = {
      type = 'boolean',
      description = 'Include the files of each commit ("M path")',
      default = false,
      hidden = true,
    },
    limit = { type = 'integer', description = 'Maximum number of commits', default = 20, minimum = 1, maximum = 500 },
    offset = { type = 'integer', description = 'Number of commits to skip', default = 0, minimum = 0, hidden = true },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place, err = revision.place(ctx, args)
    if err then
      return nil, err
    end
    local list, bad = arguments(ctx, args)
    if not list then
      return nil, bad
    end
    local commits, fault, cut = revision.log(ctx, list, place.path, args.files)
    if not commits then
      return nil, revision.error_of(fault --[[@as string]])
    end
    local more = #commits > args.limit
    if more then
      table.remove(commits)
    end
    for _, commit in ipairs(commits) do
      commit.commit = commit.commit:sub(1, 12)
      commit.parents = nil
      commit.body = args.body and commit.body or nil
    end
    return {
      commits = commits,
      next_offset = (more or cut) and args.offset + #commits or nil,
      narrow = cut and 'it was too much: give a smaller limit, or leave out files' or nil,
    }
  end,
  render = function(value)
    local rows = {}
    for _, commit in ipairs(value.commits) do
      table.insert(rows, ('%s %s %s: %s'):format(commit.commit, commit.date, commit.author, commit.subject))
      table.insert(rows, commit.body)
      vim.list_extend(rows, commit.files or {})
    end
    table.insert(rows, value.narrow or value.next_offset and ('offset=%d goes on'):format(value.next_offset) or nil)
    return #rows > 0 and table.concat(rows, '\n') or 'no commits'
  end,
}
