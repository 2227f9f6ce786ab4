--- Writes a buffer to its file.

local buffers = require('mcp-tools.editor.buffer')
local buffer_change = require('mcp-tools.editor.edit.change')
local edit_preview = require('mcp-tools.editor.edit.preview')
local errors = require('mcp-tools.errors')
local save = require('mcp-tools.editor.buffer.save')
local target = require('mcp-tools.editor.buffer.target')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'buffer_write',
  title = 'Save a buffer',
  description = 'Writes the unsaved changes of a buffer to its file, as :write does. A file that has changed on disk is'
    .. ' not overwritten unless overwrite is true. Returns written (false: nothing to write) and changedtick.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    changedtick = { type = 'integer', description = 'Refuse if the buffer has changed since' },
    overwrite = { type = 'boolean', description = 'Overwrite a file that has changed on disk', default = false },
  },
  output_schema = {
    type = 'object',
    properties = {
      path = { type = 'string' },
      bufnr = { type = 'integer' },
      written = { type = 'boolean' },
      changedtick = { type = 'integer' },
      lines = { type = 'integer' },
    },
    required = { 'path', 'bufnr', 'written', 'changedtick', 'lines' },
  },
  annotations = { read_only = false, destructive = true, idempotent = true },
  needs_approval = function(args)
    return args.overwrite and 'it overwrites changes of the file on disk' or 'it writes a file'
  end,
  preview = function(args, again)
    local found = buffers.find(args)
    local bufnr = found and found.bufnr
    local err
    if bufnr and args.changedtick and args.changedtick ~= vim.api.nvim_buf_get_changedtick(bufnr) then
      err = buffer_change.stale(bufnr, args.changedtick)
    elseif bufnr and vim.bo[bufnr].modified then
      err = save.refusal(bufnr)
    end
    if err then
      return nil, err
    end
    return edit_preview.of_write(args, again)
  end,
  run = function(ctx, args)
    local found, err = target.await(ctx, args, {})
    if not found then
      return nil, err
    elseif not found.bufnr then
      return nil, errors.new('not_found', ('%s is not open, so it has nothing to write'):format(found.shown))
    end
    if args.changedtick and args.changedtick ~= vim.api.nvim_buf_get_changedtick(found.bufnr) then
      return nil, buffer_change.stale(found.bufnr, args.changedtick)
    end
    local wanted = vim.bo[found.bufnr].modified
      or found.state == 'gone'
      or (found.path and not vim.uv.fs_stat(found.path))
    if wanted then
      err = ctx:await(function(done)
        save.write(found.bufnr, done, { path = found.path, overwrite = args.overwrite, ctx = ctx })
      end)
      if err then
        return nil, err
      end
    end
    return {
      path = (utf8.repair(buffers.shown(found.bufnr, ctx.root))),
      bufnr = found.bufnr,
      written = wanted and true or false,
      changedtick = vim.api.nvim_buf_get_changedtick(found.bufnr),
      lines = vim.api.nvim_buf_line_count(found.bufnr),
    }
  end,
}
