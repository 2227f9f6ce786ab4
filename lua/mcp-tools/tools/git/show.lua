--- Returns a commit, or a file as it was in a commit.

local access = require('mcp-tools.privacy.access')
local arguments = require('mcp-tools.editor.arguments')
local diff = require('mcp-tools.editor.git.diff')
local errors = require('mcp-tools.errors')
local line_range = require('mcp-tools.files.line_range')
local paths = require('mcp-tools.files.paths')
local result = require('mcp-tools.editor.result')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local revision = require('mcp-tools.editor.git.revision')

local ARGS = {
  revision = { type = 'string', description = 'Commit', default = 'HEAD' },
  text = { type = 'boolean', description = 'The file as it was, not its changes', default = false },
  start_line = { type = 'integer', description = 'First line of the text', default = 1, minimum = 1, hidden = true },
  limit = arguments.hidden(arguments.limit('lines', 2000, 100000)),
}

--- Returns a commit and its changes.
---@param ctx mcp-tools.Ctx
---@param args table
---@param about mcp-tools.git.Commit
---@param path string?
---@return table?
---@return string? fault
local function changes(ctx, args, about, path)
  -- A merge is compared with its first parent only.
  local fields, fault = diff.answer(ctx, { 'show', '--format=', '-m', '--first-parent', about.commit }, args, path)
  return fields and vim.tbl_extend('error', about, fields), fault
end

--- Maximum size of the file in bytes.
local MAX_FILE = 8 * 1024 * 1024

--- Returns lines of a file as it was in a commit.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param commit string
---@param path string resolved
---@param args { start_line: integer, limit: integer }
---@return table? answer
---@return mcp-tools.Error|string|nil fault
local function read_old(ctx, commit, path, args)
  local shown = access.shown(path, paths.real_root(ctx.root))
  local object = ('%s:./%s'):format(commit, shown)
  local done = revision.ask(ctx, { 'show', '--format=', '--end-of-options', object }, MAX_FILE)
  if not done.ok then
    if done.stderr:find('does not exist', 1, true) or done.stderr:find('exists on disk', 1, true) then
      return nil, errors.new('not_found', ('path: %s is not in that commit'):format(shown))
    end
    return nil, done.fault
  elseif done.cut then
    return nil, errors.new('too_large', ('%s has more than %d bytes in that commit'):format(shown, MAX_FILE))
  elseif vim.startswith(done.stdout, ('tree %s\n\n'):format(object)) then
    return nil, errors.new('validation_error', ('path: %s is a directory in that commit'):format(shown))
  end
  local range = { first = args.start_line, last = args.start_line + args.limit - 1, max_bytes = result.MAX_TEXT }
  local cutter = line_range.new(range)
  cutter:add(done.stdout)
  local lines, total = cutter:finish()
  errors.check(result.range_fault(args, total))
  local answer = result.lines(lines, { path = shown, commit = commit:sub(1, 12) }, args, total)
  answer.text = redacted_text.file(ctx, answer.text)
  return answer
end

return {
  name = 'git_show',
  title = 'Show a commit',
  description = 'Returns a commit with its message and changes, or with `text` a file as it was.',
  search_hint = 'show commit, old version of a file',
  args = vim.tbl_extend('error', ARGS, diff.ARGS),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place = errors.unwrap(revision.place(ctx, args))
    if args.text and not place.path then
      return nil, errors.new('validation_error', 'text: needs the path of a file')
    end
    local commit = errors.unwrap(revision.of_argument(ctx, args, 'revision', not args.text and revision.show or nil))
    local fields, fault
    if args.text then
      fields, fault = read_old(ctx, commit, place.path, args)
    else
      fields, fault = changes(ctx, args, commit, place.path)
    end
    if not fields then
      return nil, type(fault) == 'table' and fault or revision.error_of(fault --[[@as string]])
    end
    return fields
  end,
  render = function(value)
    if value.text then
      local rest = value.next_line and ('; start_line=%d continues'):format(value.next_line) or ''
      local head = '%s at %s, lines %d-%d of %d%s\n%s'
      return head:format(value.path, value.commit, value.start_line, value.end_line, value.lines, rest, value.text)
    end
    local message = value.body and ('%s\n\n%s'):format(value.subject, value.body) or value.subject
    local head = ('%s %s %s'):format(value.commit, value.date, value.author)
    return table.concat({ head, message, diff.render(value) }, '\n\n')
  end,
}
