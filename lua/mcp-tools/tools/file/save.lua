--- Writes unsaved changes to disk.

local approved = require('mcp-tools.editor.edit.approved')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local edit_preview = require('mcp-tools.editor.edit.preview')
local errors = require('mcp-tools.errors')
local history = require('mcp-tools.editor.edit.history')
local save = require('mcp-tools.editor.buffer.save')
local target = require('mcp-tools.editor.buffer.target')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum number of files, and of bytes that are compared for the question: it is made in one go.
local MAX, MAX_COMPARED = 100, 2 * 1024 * 1024

--- Returns the files with unsaved changes that the client has edited.
---@param client mcp-tools.Ctx|mcp-tools.Call
---@return string[] paths
local function own(client)
  local paths, seen = {}, {}
  for _, change in ipairs(history.list()) do
    if not seen[change.path] and history.is_of(change, client) then
      seen[change.path] = true
      local bufnr = buffers.of_path(change.path)
      paths[#paths + 1] = bufnr and vim.bo[bufnr].modified and change.path or nil
    end
  end
  return vim.list_slice(paths, 1, MAX)
end

--- Saves one file.
---@param ctx mcp-tools.Ctx
---@param path string
---@return { path: string, written: boolean, error: string? }
local function save_one(ctx, path)
  local found, err = target.await(ctx, { path = path }, {})
  if not found then
    return { path = path, written = false, error = err.message }
  end
  local bufnr, shown = found.bufnr, utf8.repair(found.shown)
  if not bufnr then
    local is_there = vim.uv.fs_stat(found.path) ~= nil
    return { path = shown, written = false, error = not is_there and 'there is no such file' or nil }
  elseif not vim.bo[bufnr].modified and found.state ~= 'gone' and vim.uv.fs_stat(found.path) then
    return { path = shown, written = false }
  end
  err = ctx:await(function(done)
    save.write(bufnr, done, { path = found.path, ctx = ctx })
  end)
  return { path = shown, written = not err, error = err and err.message or nil }
end

return {
  name = 'file_save',
  title = 'Save files',
  description = 'Writes unsaved changes of open files to disk, so that commands see them. Without `paths`: the files'
    .. ' that you changed.',
  search_hint = 'write buffer, flush, :w, :wa',
  args = {
    paths = { type = 'array', items = { type = 'string' }, description = 'Files', minItems = 1, maxItems = MAX },
  },
  annotations = { read_only = false, destructive = true, idempotent = true },
  recommended = true,
  needs_approval = 'it writes files',
  preview = function(args, again, call)
    local left = MAX_COMPARED
    local text, err = edit_preview.of_all(args.paths or own(call), function(path)
      local found = buffers.find({ path = path })
      if found and not found.bufnr then
        return ''
      end
      local is_modified = found and vim.bo[found.bufnr].modified
      local refusal = is_modified and save.refusal(found.bufnr)
      if is_modified and not refusal then
        local state, unreadable = disk.check(found.bufnr)
        refusal = unreadable or state == 'conflict' and save.conflict(found.bufnr) or nil
      end
      if refusal then
        return nil, refusal
      end
      local size = found and buffers.size(found.bufnr) or 0
      if found and size > left then
        return approved.not_shown(buffers.shown(found.bufnr), 'the files are too large.')
      end
      left = left - size
      return edit_preview.of_write({ path = path }, again)
    end)
    if text == '' then
      return nil, errors.new('not_found', 'nothing to save: no file that you changed is unsaved')
    end
    return text, err
  end,
  run = function(ctx, args)
    local files, failed = {}, 0
    for i, path in ipairs(args.paths or own(ctx)) do
      files[i] = save_one(ctx, path)
      failed = failed + (files[i].error and 1 or 0)
    end
    if failed > 0 and failed == #files then
      return nil, errors.new('tool_error', files[1].error)
    end
    return { files = files }
  end,
  render = function(value)
    local rows = {}
    for i, file in ipairs(value.files) do
      local state = file.written and 'saved' or file.error and 'not saved: ' .. file.error or 'had no unsaved changes'
      rows[i] = ('%s: %s'):format(file.path, state)
    end
    return #rows > 0 and table.concat(rows, '\n') or 'no file that you changed is unsaved'
  end,
}
