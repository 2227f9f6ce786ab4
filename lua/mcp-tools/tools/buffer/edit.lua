--- Edits a buffer, or a file that is not open.

local diagnostics = require('mcp-tools.editor.diagnostics.list')
local buffers = require('mcp-tools.editor.buffer')
local edit = require('mcp-tools.editor.edit')
local errors = require('mcp-tools.errors')
local edit_review = require('mcp-tools.editor.edit.edit_review')
local preview = require('mcp-tools.editor.edit.preview')
local search_edits = require('mcp-tools.editor.text.search_replace')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum length of a text in which similar places are searched synchronously, in lines.
local MAX_LINES = 1000

--- Number of attempts while others change the text.
local TRIES = 5

--- Returns whether an edit has a line number.
---@param args table
---@return boolean
local function has_line_numbers(args)
  for _, one in ipairs(args.edits) do
    if one.start_line then
      return true
    end
  end
  return false
end

--- Returns an error if edits have line numbers and the text may have changed since the client read it.
---@param args table
---@param found mcp-tools.Target|{ bufnr: integer?, new: boolean? }
---@return mcp-tools.Error?
local function line_number_refusal(args, found)
  if args.changedtick or found.new or not found.bufnr or buffers.is_unseen(found.bufnr) then
    return nil
  end
  if has_line_numbers(args) then
    local text = 'changedtick: needed for edits by line; buffer_read and the last edit give it (now %d)'
    return errors.new('validation_error', text:format(vim.api.nvim_buf_get_changedtick(found.bufnr)))
  end
end

--- Applies the edits to the current text.
---@param ctx mcp-tools.Ctx
---@param args table
---@param found mcp-tools.Target
---@param write boolean
---@return mcp-tools.FilesEdited?
---@return mcp-tools.Error? err
---@return boolean? overtaken the text has changed in the meantime, and the edit can be made again without a review
local function attempt(ctx, args, found, write)
  local bufnr = found.bufnr
  local err = edit.refusal(bufnr, args.changedtick) or line_number_refusal(args, found)
  if err then
    return nil, err
  end
  local tick = vim.api.nvim_buf_get_changedtick(bufnr)
  local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local edits, bad = search_edits.edits(lines, args.edits, { pause = time_slice.of(ctx) })
  if not edits then
    return nil, bad
  end
  local files, refused = ctx:await(function(done)
    local item = { path = found.path, bufnr = bufnr, edits = edits, changedtick = tick, lines = lines }
    edit.apply_all({ item }, { ctx = ctx, write = write }, done)
  end)
  local is_free = not args.changedtick and not has_line_numbers(args) and not edit_review.is_needed(ctx)
  return files, refused, refused and is_free and refused.code == 'stale' and edit.refusal(bufnr, tick) ~= nil
end

return {
  name = 'buffer_edit',
  title = 'Edit a buffer',
  description = 'Edits a buffer, or a closed file, in one undo step: search (exact text that occurs once) or start_line'
    .. ' and end_line, and what replaces it. Atomic; line numbers refer to the text before any edit. A closed file is'
    .. ' written; an open one stays unsaved without write.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    edits = {
      type = 'array',
      description = 'Edits that do not overlap',
      required = true,
      minItems = 1,
      maxItems = 200,
      items = {
        type = 'object',
        properties = {
          search = { type = 'string', description = 'Exact text; may span lines', minLength = 1 },
          start_line = { type = 'integer', description = 'First line to replace, from 1', minimum = 1 },
          end_line = {
            type = 'integer',
            description = 'Last line; start_line if left out; start_line - 1 inserts before it',
            minimum = 0,
          },
          replace = { type = 'string', description = 'The new text; empty deletes', required = true },
        },
      },
    },
    changedtick = { type = 'integer', description = 'Refuse if the buffer has changed since' },
    write = {
      type = 'boolean',
      description = 'Also write an open buffer',
      default = false,
    },
    diagnostics = diagnostics.EDIT_ARG,
  },
  annotations = { read_only = false, destructive = true, idempotent = false },
  recommended = true,
  needs_approval = 'it changes text',
  reviewed = true,
  previewed = { 'edits' },
  preview = function(args, again)
    local found = buffers.find(args)
    local err = found and line_number_refusal(args, found)
    if err then
      return nil, err
    end
    return preview.of(args, function(lines)
      if not search_edits.is_quick(lines, args.edits) then
        return nil, nil, 'the text is too large'
      end
      return search_edits.edits(lines, args.edits, { brief = #lines > MAX_LINES })
    end, again)
  end,
  run = function(ctx, args)
    local before = buffers.find(args)
    local is_open = before and before.bufnr and not buffers.is_unseen(before.bufnr)
    local found, err = target.await(ctx, args, { load = true })
    if not found then
      return nil, err
    end
    local files
    for _ = 1, TRIES do
      local overtaken
      files, err, overtaken = attempt(ctx, args, found, args.write or not is_open)
      if not overtaken then
        break
      end
    end
    if not files then
      return nil, err
    end
    return diagnostics.after_edit(ctx, args, {
      path = (utf8.repair(buffers.shown(found.bufnr, ctx.root))),
      bufnr = found.bufnr,
      changedtick = files[1].changedtick,
      applied = files[1].hunks,
      written = files[1].written,
      rejected = files.rejected,
      edited_by_person = files.edited,
      note = not files[1].written and #files[1].hunks > 0 and edit.UNSAVED or nil,
      disk = found.state == 'conflict' and 'changed by others' or nil,
    }, found.bufnr)
  end,
}
