--- Creates files with their directories.

local access = require('mcp-tools.privacy.access')
local buffer_change = require('mcp-tools.editor.edit.change')
local client_versions = require('mcp-tools.editor.edit.client_versions')
local disk = require('mcp-tools.editor.buffer.disk')
local edit = require('mcp-tools.editor.edit')
local edit_review = require('mcp-tools.editor.edit.edit_review')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local log = require('mcp-tools.log')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.privacy.read')
local task = require('mcp-tools.util.task')

local uv = vim.uv

local M = {}

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
    local stat = not ok and work:uv(uv.fs_stat, each) -- another call may have made it
    if not ok and not (stat and stat.type == 'directory') then
      return not_created(each, problem)
    end
    table.insert(made, ok and each or nil)
  end
end

--- Returns the resolved path of an open file: a directory of its path may have become a link.
---@param work mcp-tools.Task
---@param fd integer
---@param path string
---@return any path string; nil: unknown
local function real_path_of(work, fd, path)
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
  problem = real_path_of(work, fd, path) ~= path and elsewhere or nil
  while at < #text and not problem do
    local count
    count, problem = work:uv(uv.fs_write, fd, text:sub(at + 1), at)
    at = at + (count or 0)
  end
  local real = real_path_of(work, fd, path)
  problem = problem or real ~= path and elsewhere or nil
  if problem and real then
    work:uv(uv.fs_unlink, real) -- not `path`, which may be another file
  end
  work:uv(uv.fs_close, fd)
  return problem and not_created(path, problem) or nil
end

---@class mcp-tools.CreatedFile
---@field path string resolved
---@field shown string
---@field lines string[] its text
---@field directories string[] created for it, parents first
---@field note mcp-tools.ReviewNote

--- Creates a file and missing directories, or nothing if an error occurs or the call ends meanwhile.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@param text string
---@return string[]? directories created for it, parents first
---@return mcp-tools.Error? err
local function create(ctx, path, text)
  return ctx:await(function(done)
    local made = {}
    task.run({}, function(work)
      local err = create_directories(work, vim.fs.dirname(path), ctx.root, made) or write_new(work, path, text)
      if not err and ctx:cancelled() then
        work:uv(uv.fs_unlink, path)
        err = errors.new('cancelled', 'cancelled before the file was created')
      end
      for i = #made, 1, -1 do
        if err then
          work:uv(uv.fs_rmdir, made[i])
        end
      end
      return err
    end, function(ok, err)
      err = not ok and not_created(path, err) or err
      done(not err and made or nil, err)
    end)
  end)
end

--- Creates a file, after the user's review if one is configured. CRLF line breaks of the text are kept.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param path string resolved
---@param text string
---@return mcp-tools.CreatedFile? created
---@return mcp-tools.Error? err
function M.file(ctx, path, text)
  local note, err = {}, nil
  local plain, ends = file_text.with_lf(text)
  text = ends.crlf and plain:gsub('\n', '\r\n') or plain
  if edit_review.is_needed(ctx) then
    text, err, note = ctx:await(function(done)
      edit_review.before_new(ctx, path, text, done)
    end)
  end
  local directories
  if not err then
    directories, err = create(ctx, path, text)
  end
  if not directories then
    return nil, err
  end
  local lines = text == '' and {} or file_text.lines_of(file_text.decode(text))
  return { path = path, shown = access.shown(path, ctx.root), lines = lines, directories = directories, note = note }
end

--- Records a file that a call has created in the history, and that the client knows its text.
---@param ctx mcp-tools.Ctx
---@param created mcp-tools.CreatedFile
function M.record(ctx, created)
  disk.notify_servers(created.path, 'Created')
  edit.record_created(created.path, created.lines, ctx)
  if not (created.note and created.note.edited) then
    client_versions.note(ctx, created)
  end
end

--- Removes created files that nobody has changed since, and their directories.
---@param list mcp-tools.CreatedFile[]
---@param cb fun()
function M.remove(list, cb)
  task.run({}, function(work)
    for i = #list, 1, -1 do
      local one = list[i]
      local err = work:await(function(done)
        buffer_change.delete_created(one.path, one.lines, done)
      end)
      if err then
        log.error('cannot undo an edit of several files completely: %s', err.message)
      end
      for j = err and 0 or #one.directories, 1, -1 do
        work:uv(uv.fs_rmdir, one.directories[j])
      end
    end
  end, cb)
end

return M
