--- Closes a buffer that is in no window.

local buffers = require('mcp-tools.editor.buffer')
local edit_preview = require('mcp-tools.editor.edit.preview')
local errors = require('mcp-tools.errors')
local target = require('mcp-tools.editor.buffer.target')
local utf8 = require('mcp-tools.util.utf8')

--- Throws an error value if the buffer cannot be closed.
---@param bufnr integer
---@param shown string
---@param discard boolean
local function check(bufnr, shown, discard)
  if #vim.fn.win_findbuf(bufnr) > 0 then
    error(errors.new('busy', ('%s is shown in a window; the user can close it'):format(shown)), 0)
  elseif vim.bo[bufnr].buftype == 'terminal' then
    error(errors.new('tool_error', ('%s is a terminal, which this tool does not close'):format(shown)), 0)
  elseif vim.bo[bufnr].modified and not discard then
    local text = '%s has unsaved changes; write them (file_save), or discard them with discard = true'
    error(errors.new('tool_error', text:format(shown)), 0)
  end
end

return {
  name = 'buffer_close',
  title = 'Close a buffer',
  description = 'Closes an open file that is not shown in a window. Refuses unsaved changes unless `discard` is true.',
  args = {
    path = { type = 'string', description = 'File path' },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 1, hidden = true },
    discard = { type = 'boolean', description = 'Discard unsaved changes', default = false },
  },
  annotations = { read_only = false, destructive = true, idempotent = true },
  needs_approval = function(args)
    return args.discard and 'it discards the unsaved changes shown here' or false
  end,
  preview = function(args, again)
    local found = errors.unwrap(buffers.find(args))
    if not found.bufnr then
      return 'It is not open.'
    end
    check(found.bufnr, buffers.shown(found.bufnr), args.discard)
    return edit_preview.of_write(args, again)
  end,
  run = function(ctx, args)
    local found = errors.unwrap(target.await(ctx, args, {}))
    local path = utf8.repair(found.shown)
    if not found.bufnr then
      return { path = path, closed = false, note = 'it is not open' }
    end
    check(found.bufnr, found.shown, args.discard)
    local ok, thrown = pcall(vim.cmd, ('silent bdelete%s %d'):format(args.discard and '!' or '', found.bufnr))
    if not ok then
      return nil, errors.new('tool_error', ('%s was not closed: %s'):format(found.shown, errors.plain(thrown)))
    end
    return { path = path, bufnr = found.bufnr, closed = true }
  end,
  render = function(value)
    return ('%s %s.'):format(value.path, value.closed and 'is closed' or 'is not open')
  end,
}
