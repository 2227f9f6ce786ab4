--- Creates a file, or replaces the whole text of a file that the client has read.

local after_edit = require('mcp-tools.editor.diagnostics.after_edit')
local answer = require('mcp-tools.editor.diagnostics.edit_answer')
local buffers = require('mcp-tools.editor.buffer')
local client_versions = require('mcp-tools.editor.edit.client_versions')
local create = require('mcp-tools.editor.edit.create')
local edit = require('mcp-tools.editor.edit')
local edit_preview = require('mcp-tools.editor.edit.preview')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local target = require('mcp-tools.editor.buffer.target')

--- Byte order mark of UTF-8.
local BOM = '\239\187\191'

--- Returns the line endings to write when a file is replaced. Tools return its text without CR, so a text without CR
--- keeps the CRLF line breaks of the file.
---@param text string
---@param now mcp-tools.TextEnds
---@return mcp-tools.TextEnds ends
---@return boolean kept whether CRLF line breaks of the file are kept although the text has LF
local function ends_for(text, now)
  local _, ends = file_text.with_lf(text)
  local kept = now.crlf and not ends.crlf and not text:find('\r\n', 1, true)
  return { last = ends.last, crlf = ends.crlf or kept }, kept and text:find('\n', 1, true) ~= nil
end

--- Returns edits that replace the whole text.
---@param count integer number of lines of the current text
---@param text string
---@return mcp-tools.Edit[]
local function whole(count, text)
  local plain, ends = file_text.with_lf(text)
  plain = ends.last and plain or plain .. '\n'
  return { { start_line = 0, start_col = 0, end_line = count, end_col = 0, text = plain } }
end

--- Returns a note about differences between the text of the call and the bytes on disk.
---@param text string
---@param bufnr integer
---@param kept boolean
---@return string?
local function note_of(text, bufnr, kept)
  local options, parts = vim.bo[bufnr], {}
  if kept then
    table.insert(parts, 'CRLF line breaks')
  end
  if options.bomb and text:sub(1, 3) ~= BOM then
    table.insert(parts, 'a byte order mark')
  end
  if options.fileencoding ~= '' and options.fileencoding ~= 'utf-8' then
    table.insert(parts, 'the encoding ' .. options.fileencoding)
  end
  return #parts > 0 and 'it keeps ' .. table.concat(parts, ' and ') or nil
end

---@param stat uv.fs_stat.result?
---@param name string
local function check_type(stat, name)
  if stat and stat.type ~= 'file' then
    error(errors.new('tool_error', ('%s is a %s, not a file'):format(name, stat.type)), 0)
  end
end

--- Throws an error value if the client does not know the current text of the file.
---@param client mcp-tools.Ctx|mcp-tools.Call
---@param found { path: string?, bufnr: integer? } `path`: resolved
---@param name string
local function check_read(client, found, name)
  local is_known = client_versions.is_known(client, found)
  if not is_known then
    local text = is_known == nil and '%s exists; read it first with file_read, or change parts of it with file_edit'
      or '%s has changed since you read it; read it again with file_read'
    error(errors.new('stale', text:format(name)), 0)
  end
end

---@param ctx mcp-tools.Ctx
---@param args table
---@param path string
local function replace(ctx, args, path)
  local found = errors.unwrap(target.await(ctx, { path = path }, { load = true }))
  check_read(ctx, found, found.shown)
  local bufnr = found.bufnr
  local ends, kept = ends_for(args.text, file_text.kept_ends_of(bufnr))
  local edits = whole(vim.api.nvim_buf_line_count(bufnr), args.text)
  -- Neovim writes the byte order mark of a file that has one, whether or not the client has sent it.
  edits[1].text = vim.bo[bufnr].bomb and edits[1].text:gsub('^' .. BOM, '') or edits[1].text
  local tick = vim.api.nvim_buf_get_changedtick(bufnr)
  local files = errors.unwrap(ctx:await(function(done)
    local item = { path = found.path, bufnr = bufnr, edits = edits, changedtick = tick, ends = ends }
    edit.apply_all({ item }, { ctx = ctx, write = true }, done)
  end))
  local note = vim.api.nvim_buf_is_loaded(bufnr) and note_of(args.text, bufnr, kept) or nil
  return answer.of(ctx, args, files, { more = { { note = note } } })
end

return {
  name = 'file_write',
  title = 'Write a file',
  description = 'Creates a file with its directories, or replaces all of its text. Refused if the file changed since'
    .. ' you read it.',
  search_hint = 'create, new file, overwrite, save text',
  args = {
    path = { type = 'string', description = 'File', required = true },
    text = { type = 'string', description = 'The whole new text', required = true },
    diagnostics = after_edit.ARG,
  },
  annotations = { read_only = false, destructive = true, idempotent = false },
  recommended = true,
  needs_approval = 'it writes a file',
  reviewed = true,
  previewed = { 'path', 'text' },
  preview = function(args, again, call)
    local found = errors.unwrap(buffers.find({ path = args.path }))
    local stat = vim.uv.fs_lstat(found.path)
    check_type(stat, args.path)
    if not found.bufnr and not stat then
      return edit_preview.of_new(args.path, args.text)
    elseif call then
      check_read(call, found, args.path)
    end
    return edit_preview.of({ path = args.path }, function(now)
      return whole(#now, args.text)
    end, {
      again = again,
      is_replaced = true,
      ends_of = function(now)
        return (ends_for(args.text, now))
      end,
    })
  end,
  run = function(ctx, args)
    local found = errors.unwrap(target.await(ctx, { path = args.path }, {}))
    local stat = ctx:await(function(done)
      vim.uv.fs_lstat(
        found.path,
        vim.schedule_wrap(function(_, stat)
          done(stat)
        end)
      )
    end)
    check_type(stat, found.shown)
    if stat or found.bufnr then
      return replace(ctx, args, found.path)
    end
    local created = errors.unwrap(create.file(ctx, found.path, args.text))
    create.record(ctx, created)
    return answer.of(ctx, args, created.note, { created = { created } })
  end,
  render = answer.text,
}
