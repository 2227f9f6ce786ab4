--- Creates a file, or replaces the whole text of a file whose current state the client knows.

local access = require('mcp-tools.privacy.access')
local diagnostics = require('mcp-tools.editor.diagnostics.list')
local buffers = require('mcp-tools.editor.buffer')
local contents = require('mcp-tools.editor.buffer.contents')
local disk = require('mcp-tools.editor.buffer.disk')
local edit = require('mcp-tools.editor.edit')
local edit_preview = require('mcp-tools.editor.edit.preview')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local edit_review = require('mcp-tools.editor.edit.edit_review')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local read = require('mcp-tools.privacy.read')
local target = require('mcp-tools.editor.buffer.target')
local task = require('mcp-tools.util.task')
local text_diff = require('mcp-tools.editor.text.diff')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

--- `FileChangeType` of the LSP specification.
local CREATED = 1
--- Byte order mark of UTF-8.
local BOM = '\239\187\191'

--- Returns the text of a call with LF line breaks, and the line endings to write.
---@param args { text: string, line_breaks: 'lf'|'crlf'|nil }
---@return string text
---@return mcp-tools.TextEnds ends
local function sent(args)
  local text, ends = file_text.with_lf(args.line_breaks and args.text:gsub('\r\n', '\n') or args.text)
  ends.crlf = ends.crlf or args.line_breaks == 'crlf'
  return text, ends
end

--- Returns the line endings to write when a file is replaced. Tools return its text without CR, so a text without CR
--- keeps the CRLF line breaks of the file.
---@param args { text: string, line_breaks: 'lf'|'crlf'|nil }
---@param now mcp-tools.TextEnds
---@return mcp-tools.TextEnds ends
---@return boolean kept whether CRLF line breaks of the file are kept although the text has LF
local function ends_for(args, now)
  local _, ends = sent(args)
  local kept = now.crlf and not ends.crlf and not args.line_breaks and not args.text:find('\r\n', 1, true)
  return { last = ends.last, crlf = ends.crlf or kept }, kept and args.text:find('\n', 1, true) ~= nil
end

--- Returns edits that replace the whole text.
---@param count integer number of lines of the current text
---@param args { text: string, line_breaks: 'lf'|'crlf'|nil }
---@return mcp-tools.Edit[]
local function whole(count, args)
  local text, ends = sent(args)
  text = ends.last and text or text .. '\n'
  return { { start_line = 0, start_col = 0, end_line = count, end_col = 0, text = text } }
end

--- Returns a note about differences between the text of the call and the bytes on disk.
---@param args { text: string }
---@param bufnr integer
---@param kept boolean
---@return string?
local function note_of(args, bufnr, kept)
  local options, parts = vim.bo[bufnr], {}
  if kept then
    table.insert(parts, "CRLF line breaks (line_breaks = 'lf' changes them)")
  end
  if options.bomb and args.text:sub(1, 3) ~= BOM then
    table.insert(parts, 'a byte order mark')
  end
  if options.fileencoding ~= '' and options.fileencoding ~= 'utf-8' then
    table.insert(parts, 'the encoding ' .. options.fileencoding)
  end
  return #parts > 0 and 'the file keeps ' .. table.concat(parts, ' and ') or nil
end

--- Returns why the file cannot be written, as far as that is known without reading it.
---@param args table
---@param found { bufnr: integer?, shown: string }
---@param stat table?
---@return mcp-tools.Error?
local function refusal(args, found, stat)
  if stat and stat.type ~= 'file' then
    return errors.new('tool_error', ('%s is a %s, not a file'):format(found.shown, stat.type))
  elseif not stat and not found.bufnr then
    local given = args.expected_sha256 and 'expected_sha256' or args.changedtick and 'changedtick'
    local text = '%s does not exist; leave out %s to create it'
    return given and errors.new('stale', text:format(found.shown, given)) or nil
  elseif found.bufnr and args.changedtick then
    return edit.refusal(found.bufnr, args.changedtick)
  elseif found.bufnr and vim.bo[found.bufnr].modified then
    local text = '%s is open with unsaved changes; pass changedtick (buffer_read), or use buffer_edit'
    return errors.new('stale', text:format(found.shown))
  elseif not args.expected_sha256 then
    local text = '%s exists; pass expected_sha256 (file_checksum) to replace the file, or use buffer_edit'
    return errors.new('stale', text:format(found.shown))
  end
end

--- Returns an error if an existing file has changed since the client read it.
---@param ctx mcp-tools.Ctx
---@param args table
---@param found mcp-tools.Target
---@return mcp-tools.Error?
local function unexpected(ctx, args, found)
  if found.bufnr and args.changedtick then
    return nil
  end
  local sum, err = contents.checksum(ctx, found.path)
  if not sum then
    return err --[[@as mcp-tools.Error]]
  elseif sum ~= args.expected_sha256:lower() then
    return errors.new('stale', ('%s has changed since (sha256 %s); read it again'):format(found.shown, sum))
  end
end

---@param ctx mcp-tools.Ctx
---@param args table
---@param found mcp-tools.Target
local function replace(ctx, args, found)
  -- Before the checksum: later changes change `changedtick`, earlier ones the checksum.
  local loaded, err = target.await(ctx, { path = found.path }, { load = true })
  if not loaded then
    return nil, err
  end
  local bufnr = loaded.bufnr
  local tick = vim.api.nvim_buf_get_changedtick(bufnr)
  err = unexpected(ctx, args, found)
  if err then
    return nil, err
  end
  local ends, kept = ends_for(args, file_text.kept_ends_of(bufnr))
  local edits = whole(vim.api.nvim_buf_line_count(bufnr), args)
  -- Neovim writes the byte order mark of a file that has one, whether or not the client has sent it.
  edits[1].text = vim.bo[bufnr].bomb and edits[1].text:gsub('^' .. BOM, '') or edits[1].text
  local files
  files, err = ctx:await(function(done)
    local tick_read = args.changedtick or tick
    local item = { path = found.path, bufnr = bufnr, edits = edits, changedtick = tick_read, ends = ends }
    edit.apply_all({ item }, { ctx = ctx, write = true }, done)
  end)
  if not files then
    return nil, err
  end
  return diagnostics.after_edit(ctx, args, {
    path = (utf8.repair(found.shown)),
    created = false,
    written = files[1].written,
    bufnr = bufnr,
    changedtick = files[1].changedtick,
    applied = files[1].hunks,
    rejected = files.rejected,
    edited_by_person = files.edited,
    note = vim.api.nvim_buf_is_loaded(bufnr) and note_of(args, bufnr, kept) or nil,
  }, bufnr)
end

--- 0777 and 0666; the umask removes bits.
local DIRECTORY_MODE, FILE_MODE = 511, 438

---@param path string
---@param problem string?
local function not_created(path, problem)
  if (problem or ''):match('^EEXIST') then
    return errors.new('stale', ('%s exists now; read it before you change it'):format(path))
  end
  return errors.new('tool_error', ('%s cannot be created: %s'):format(path, problem or 'unknown'))
end

--- Creates missing directories, parents first.
---@param work mcp-tools.Task
---@param directory string
---@param root string
---@param made string[] those that were created
---@return mcp-tools.Error?
local function create_directories(work, directory, root, made)
  local missing = {}
  while not work:uv(uv.fs_stat, directory) do
    table.insert(missing, 1, directory)
    directory = vim.fs.dirname(directory)
  end
  if #missing > 0 and not paths.inside(missing[1], root) then
    local text = 'there is no directory %s; directories are only created inside the project'
    return errors.new('not_found', text:format(missing[1]))
  end
  for _, each in ipairs(missing) do
    local ok, problem = work:uv(uv.fs_mkdir, each, DIRECTORY_MODE)
    if not ok then
      return not_created(each, problem)
    end
    table.insert(made, each)
  end
end

--- Returns the resolved path of an open file: a directory of its path may have become a link.
---@param work mcp-tools.Task
---@param fd integer
---@param path string
---@return any path string; nil: unknown
local function place_of(work, fd, path)
  return work:await(function(done)
    read.real_path(fd, path, vim.schedule_wrap(done))
  end)
end

---@param work mcp-tools.Task
---@param path string
---@param text string
---@return mcp-tools.Error?
local function write_new(work, path, text)
  local fd, problem = work:uv(uv.fs_open, path, 'wx', FILE_MODE)
  if not fd then
    return not_created(path, problem)
  end
  local at, elsewhere = 0, 'it was replaced after it was approved'
  problem = place_of(work, fd, path) ~= path and elsewhere or nil
  while at < #text and not problem do
    local count
    count, problem = work:uv(uv.fs_write, fd, text:sub(at + 1), at)
    at = at + (count or 0)
  end
  local real = place_of(work, fd, path)
  problem = problem or real ~= path and elsewhere or nil
  if problem and real then
    work:uv(uv.fs_unlink, real) -- not `path`, which may be another file
  end
  work:uv(uv.fs_close, fd)
  return problem and not_created(path, problem) or nil
end

--- Creates a file and missing directories, or nothing if an error occurs. It continues if the call ends meanwhile.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@param text string
---@return mcp-tools.Error? err
local function create(ctx, path, text)
  return ctx:await(function(done)
    task.run({}, function(work)
      local made = {}
      local err = create_directories(work, vim.fs.dirname(path), ctx.root, made) or write_new(work, path, text)
      for i = #made, 1, -1 do
        if err then
          work:uv(uv.fs_rmdir, made[i])
        end
      end
      return err
    end, function(ok, err)
      done(ok and err or not ok and not_created(path, err) or nil)
    end)
  end)
end

return {
  name = 'file_write',
  title = 'Write a file',
  description = 'Writes a whole file. Creates a new file and its directories inside the project. Replaces a file'
    .. ' only with expected_sha256 or the changedtick of its buffer, in one undo step. For parts, use buffer_edit.',
  args = {
    path = {
      type = 'string',
      description = 'File',
      required = true,
    },
    text = { type = 'string', description = 'Whole text', required = true },
    line_breaks = {
      type = 'string',
      enum = { 'lf', 'crlf' },
      description = 'Line breaks; default: CRLF if the text or the replaced file has them',
    },
    expected_sha256 = { type = 'string', description = 'Checksum of the replaced file', pattern = '^[0-9a-fA-F]{64}$' },
    changedtick = { type = 'integer', description = 'changedtick of the open buffer that is replaced' },
    diagnostics = diagnostics.EDIT_ARG,
  },
  annotations = { read_only = false, destructive = true, idempotent = false },
  needs_approval = 'it writes a file',
  reviewed = true,
  previewed = { 'text' },
  preview = function(args, again)
    local found, err = buffers.find({ path = args.path })
    if found then
      local known = { bufnr = found.bufnr, shown = access.shown(found.path, project.root()) }
      err = refusal(args, known, uv.fs_lstat(found.path))
    end
    if err then
      return nil, err
    end
    if not found.bufnr and not uv.fs_lstat(found.path) then
      local name = access.shown(found.path, project.root())
      local lines = args.text == '' and {} or file_text.lines_of((sent(args)))
      local text = text_diff.unified({}, lines, { old = '/dev/null', new = 'b/' .. name })
      return text ~= '' and text or 'An empty file would be created.'
    end
    return edit_preview.of(
      { path = args.path, changedtick = args.changedtick },
      function(now)
        return whole(#now, args)
      end,
      again,
      function(now)
        return (ends_for(args, now))
      end
    )
  end,
  run = function(ctx, args)
    local found, err = target.await(ctx, { path = args.path }, {})
    if not found then
      return nil, err
    end
    local stat = ctx:await(function(done)
      uv.fs_lstat(
        found.path,
        vim.schedule_wrap(function(_, stat)
          done(stat)
        end)
      )
    end)
    err = refusal(args, found, stat)
    if err then
      return nil, err
    elseif stat or found.bufnr then
      return replace(ctx, args, found)
    end
    local text, note = sent(args), {}
    text = select(2, sent(args)).crlf and text:gsub('\n', '\r\n') or text
    if edit_review.is_needed(ctx) then
      text, err, note = ctx:await(function(done)
        edit_review.before_new(ctx, found.path, text, done)
      end)
    end
    err = err or create(ctx, found.path, text)
    if err then
      return nil, err
    end
    disk.notify_servers(found.path, CREATED)
    edit.record_created(found.path, text == '' and {} or file_text.lines_of(text), ctx)
    return diagnostics.after_edit(ctx, args, {
      path = (utf8.repair(found.shown)),
      created = true,
      written = true,
      bytes = #text,
      rejected = note.rejected,
      edited_by_person = note.edited,
    }, found.path)
  end,
}
