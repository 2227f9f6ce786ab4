--- A commit, or a file as it was in one.

local access = require('mcp-tools.privacy.access')
local diff = require('mcp-tools.editor.git.diff')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.editor.git.log')
local paths = require('mcp-tools.files.paths')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local revision = require('mcp-tools.editor.git.revision')
local strings = require('mcp-tools.util.strings')

local ARGS = {
  revision = { type = 'string', description = 'Commit, branch or tag', default = 'HEAD' },
  text = { type = 'boolean', description = 'The text of the file (path) as it was, not its changes', default = false },
  start_line = { type = 'integer', description = 'First line of the text', default = 1, minimum = 1 },
  limit = {
    type = 'integer',
    description = 'At most so many lines of it',
    default = 2000,
    minimum = 1,
    maximum = 100000,
  },
}

--- The commit with what it changed.
---@param ctx mcp-tools.Ctx
---@param args table
---@param about mcp-tools.git.Commit
---@param path string?
---@return table?
---@return string? fault
local function changes(ctx, args, about, path)
  -- Of a merge what it brought to the branch that it was made on.
  local fields, fault = diff.answer(ctx, { 'show', '--format=', '-m', '--first-parent', about.commit }, args, path)
  return fields and vim.tbl_extend('error', about, fields), fault
end

--- Text beyond this is cut at a line, so that one answer fits a model's context.
local MAX_BYTES = 256 * 1024
--- Of the whole file.
local MAX_FILE = 8 * 1024 * 1024

---@param text string
---@param first integer
---@param count integer
---@return string[] lines of the range that fit
---@return integer total
local function range(text, first, count)
  local lines, total, bytes, full = {}, 0, 0, false
  for line in strings.each_ended(text:sub(-1) == '\n' and text or text .. '\n', '\n') do
    total = total + 1
    if total >= first and total < first + count and not full then
      bytes = bytes + #line + 1
      full = bytes > MAX_BYTES and #lines > 0
      if not full then
        lines[#lines + 1] = line:sub(1, MAX_BYTES)
      end
    end
  end
  return lines, text == '' and 0 or total
end

--- Some lines of a file as it was. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param commit string
---@param path string resolved
---@param first integer
---@param count integer
---@return table? answer
---@return mcp-tools.Error|string|nil fault
local function read_old(ctx, commit, path, first, count)
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
    return nil, errors.new('validation_error', ('path: %s is a folder in that commit'):format(shown))
  end
  local lines, total = range(done.stdout, first, count)
  if first > math.max(total, 1) then
    local text = 'start_line: line %d is beyond the end (%d lines)'
    return nil, errors.new('validation_error', text:format(first, total))
  end
  local text, lossy = redacted_text.file(ctx, table.concat(lines, '\n'))
  local last = first + #lines - 1
  return {
    path = shown,
    commit = commit:sub(1, 12),
    lines = total,
    start_line = first,
    end_line = last,
    next_line = last < total and last + 1 or nil,
    lossy = lossy or nil,
    text = text,
  }
end

return {
  name = 'git_show',
  description = 'A commit: message, author, date and what it changed (of a merge: against its first parent). With'
    .. ' text=true and path: the file as it was then, lines from 1; when the answer has next_line there is more.'
    .. ' Sensitive files are withheld.',
  args = vim.tbl_extend('error', ARGS, diff.ARGS),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place, err = revision.place(ctx, args)
    if err then
      return nil, err
    elseif args.text and not place.path then
      return nil, errors.new('validation_error', 'text: needs the path of a file')
    end
    local commit, bad = revision.of_argument(ctx, args, 'revision', not args.text and log.one or nil)
    if not commit then
      return nil, bad
    end
    local fields, fault
    if args.text then
      fields, fault = read_old(ctx, commit, place.path, args.start_line, args.limit)
    else
      fields, fault = changes(ctx, args, commit, place.path)
    end
    if not fields then
      return nil, type(fault) == 'table' and fault or revision.error_of(fault --[[@as string]])
    end
    return fields
  end,
}
