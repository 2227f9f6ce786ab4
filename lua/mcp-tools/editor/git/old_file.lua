--- The text of a file as it was in a commit.
---
--- Receives: a commit in full, a path that may be shown.
--- Sends: some of its lines, or why there are none.
--- Does not know about: arguments of tools.

local access = require('mcp-tools.files.access')
local errors = require('mcp-tools.errors')
local paths = require('mcp-tools.files.paths')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local revision = require('mcp-tools.editor.git.revision')
local strings = require('mcp-tools.util.strings')

local M = {}

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
function M.read(ctx, commit, path, first, count)
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

return M
