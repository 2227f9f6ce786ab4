--- Detects files that changed on disk, before their text is read or changed.
---
--- `:checktime` compares the file with what was read and runs an autocommand instead of asking the user. It reports a
--- change only once, to the autocommand or to the user. If the buffer has unsaved changes, it also reports a file of
--- which only the time differs. So, unless a file is in the state that was read last, its text is compared with the
--- text that the buffer had then.

local access = require('mcp-tools.privacy.access')
local autocommands = require('mcp-tools.editor.buffer.autocommands')
local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local garbage = require('mcp-tools.util.garbage')
local highlighting = require('mcp-tools.editor.buffer.highlighting')
local log = require('mcp-tools.log')
local open = require('mcp-tools.editor.buffer.open')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.privacy.read')
local read_stamp = require('mcp-tools.editor.buffer.read_stamp')
local read_sync = require('mcp-tools.util.read_sync')
local strings = require('mcp-tools.util.strings')
local task = require('mcp-tools.util.task')
local text_diff = require('mcp-tools.editor.text.diff')
local time_slice = require('mcp-tools.util.time_slice')

local api, fn, uv = vim.api, vim.fn, vim.uv

local M = {}

read_stamp.start()

--- Maximum number of lines for the choice "edit" (`:h v:fcs_choice`), for which Neovim takes quadratic time. It keeps
--- language servers attached, but appends an empty line to the text of a blank buffer.
local MAX_CHOICE_LINES = 50 * 1000
--- Number of lines compared between two pauses.
local PIECE = 2000
--- Number of attempts while the buffer keeps changing; the last one is made without pauses.
local MAX_TRIES = 4

---@alias mcp-tools.DiskState
---| 'same' nothing has changed, or there is no file yet
---| 'reloaded' the file had changed; the buffer now has its text
---| 'conflict' the file has changed and the buffer has unsaved changes
---| 'gone' the file has been deleted
---| 'unreadable' something that Neovim must not read has replaced the file, or it has become too large

--- Returns whether a file is in a workspace folder of a language server.
---@param client vim.lsp.Client
---@param path string
---@return boolean
local function is_in_workspace(client, path)
  local roots = { client.config.root_dir }
  for _, folder in ipairs(client.workspace_folders or {}) do
    table.insert(roots, vim.uri_to_fname(folder.uri))
  end
  return vim.iter(roots):any(function(root)
    return type(root) == 'string' and root ~= '' and vim.startswith(path, strings.directory(root))
  end)
end

--- Notifies language servers of a file that changed on disk (`workspace/didChangeWatchedFiles`).
---@param path string resolved
---@param kind 'Created'|'Changed'|'Deleted'
function M.notify_servers(path, kind)
  local change = { uri = vim.uri_from_fname(path), type = vim.lsp.protocol.FileChangeType[kind] }
  for _, client in ipairs(vim.lsp.get_clients()) do
    if is_in_workspace(client, path) then
      client.rpc.notify('workspace/didChangeWatchedFiles', { changes = { change } })
    end
  end
end

--- Reads the file into an unmodified buffer even if Neovim has already reported the change.
---@param bufnr integer
---@return mcp-tools.Error? err it was not read
local function reload(bufnr)
  local is_listed, readonly, seen = vim.bo[bufnr].buflisted, vim.bo[bufnr].readonly, highlighting.seen(bufnr)
  local tick, ok, thrown = api.nvim_buf_get_changedtick(bufnr), nil, nil
  if not uv.fs_access(api.nvim_buf_get_name(bufnr), 'R') then -- `:edit!` would empty the buffer
    return errors.new('tool_error', ('%s cannot be read'):format(buffers.shown(bufnr)))
  end
  local ignored = vim.go.eventignore
  vim.go.eventignore = 'FileType,' .. ignored -- it would highlight dangerous text
  buffers.keep_views(bufnr, function()
    ok, thrown = pcall(api.nvim_buf_call, bufnr, function()
      vim.cmd('silent keepalt keepjumps edit!')
    end)
  end)
  vim.go.eventignore = ignored
  if api.nvim_buf_is_valid(bufnr) then -- an autocommand may have deleted it
    vim.bo[bufnr].buflisted = is_listed
    vim.bo[bufnr].readonly = readonly or vim.bo[bufnr].readonly
  end
  if api.nvim_buf_is_loaded(bufnr) then
    highlighting.after_reading(bufnr, seen)
  end
  if not ok and api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_changedtick(bufnr) == tick then
    local text = '%s changed on disk and cannot be read now: %s'
    return errors.new('busy', text:format(buffers.shown(bufnr), errors.plain(thrown)))
  end
end

--- Makes Neovim check the file. An unmodified buffer is read again with the current line breaks and encoding;
--- 'autoread' would keep the earlier ones.
---@param bufnr integer
---@return string? reason `v:fcs_reason` if Neovim reported a change
---@return mcp-tools.Error? err the file cannot be read
local function checktime(bufnr)
  local reason, seen
  local count = api.nvim_buf_line_count(bufnr)
  local is_blank = count == 1 and api.nvim_buf_get_lines(bufnr, 0, 1, false)[1] == ''
  local must_reload = is_blank or count > MAX_CHOICE_LINES
  local hook = api.nvim_create_autocmd('FileChangedShell', {
    buffer = bufnr,
    desc = 'mcp-tools: no question about a file that has changed',
    callback = function()
      reason = vim.v.fcs_reason
      if reason == 'changed' and not must_reload then
        seen = highlighting.seen(bufnr)
        vim.v.fcs_choice = 'edit'
      else
        vim.v.fcs_choice = ''
      end
    end,
  })
  local autoread, ignored = vim.bo[bufnr].autoread, vim.go.eventignore
  vim.bo[bufnr].autoread, vim.go.eventignore = false, 'FileType' -- otherwise the autocommand may not run
  pcall(vim.cmd, ('silent checktime %d'):format(bufnr))
  vim.go.eventignore = ignored
  pcall(api.nvim_del_autocmd, hook)
  if api.nvim_buf_is_valid(bufnr) then
    vim.bo[bufnr].autoread = autoread
  end
  if reason == 'changed' and must_reload then
    return reason, reload(bufnr)
  elseif reason == 'changed' and api.nvim_buf_is_loaded(bufnr) then
    highlighting.after_reading(bufnr, seen)
  end
  return reason
end

--- Notes that a buffer's file has the text that was read or written last.
---@param bufnr integer
---@param stat table? status of the file before it was read or written
function M.note_read(bufnr, stat)
  read_stamp.set(bufnr, { read = paths.stamp_of(stat) })
end

--- Makes Neovim regard the file as read while the buffer keeps its lines, so that `:w` no longer asks about the change
--- on disk.
---@param bufnr integer loaded
---@return string[]? lines of the file; nil when the file or the buffer is gone, or it cannot or must not be read
function M.acknowledge(bufnr)
  local path = api.nvim_buf_get_name(bufnr)
  local stat = uv.fs_stat(path)
  if not stat or open.unreadable(path, stat) then
    return nil
  end
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local undoreload = vim.go.undoreload
  vim.go.undoreload = -1 -- keep the undo history of a text of any length
  local err = reload(bufnr)
  vim.go.undoreload = undoreload
  if err or not api.nvim_buf_is_loaded(bufnr) then
    return nil
  end
  M.note_read(bufnr, stat)
  local lines_on_disk = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local first, last = text_diff.same_lines(lines_on_disk, lines)
  if first < #lines or #lines ~= #lines_on_disk then
    buffers.keep_views(bufnr, function()
      api.nvim_buf_call(bufnr, function()
        pcall(vim.cmd --[[@as fun(command: string)]], 'undojoin')
        local kept = vim.list_slice(lines, first + 1, #lines - last)
        api.nvim_buf_set_lines(bufnr, first, #lines_on_disk - last, false, kept)
      end)
    end)
  end
  return lines_on_disk
end

--- Returns whether Neovim has never read a file for this buffer because none existed. If one was created since,
--- `:checktime` would ask the user about it; only `:file` shows this state.
---@param bufnr integer
---@return boolean
local function is_new(bufnr)
  local is_empty = api.nvim_buf_line_count(bufnr) == 1 and api.nvim_buf_get_offset(bufnr, 1) <= 1
  if not vim.bo[bufnr].modified and not is_empty then
    return false
  end
  local ok, about = pcall(api.nvim_buf_call, bufnr, function()
    return vim.fn.execute('file')
  end)
  local flags = ok and about:match('^.*"(.*)$') or ''
  return flags:find(vim.fn.gettext('[New]'), 1, true) ~= nil
end

--- Returns whether the text of a buffer is equal to `text`.
---@param bufnr integer
---@param text string with "\n" at the end of each line
---@param pause fun() called between pieces of work
---@return boolean
local function has_text(bufnr, text, pause)
  local at, first = 1, 0
  while api.nvim_buf_is_loaded(bufnr) and first < api.nvim_buf_line_count(bufnr) do
    local lines = garbage.without(api.nvim_buf_get_lines, bufnr, first, first + PIECE, false)
    lines[#lines + 1] = '' -- the last line has an ending, too
    local piece = table.concat(lines, '\n')
    if text:sub(at, at + #piece - 1) ~= piece then
      return false
    end
    at, first = at + #piece, first + PIECE
    pause()
  end
  return at > #text
end

--- Returns whether the line endings of a file are those of its buffer.
---@param bufnr integer loaded
---@param bytes string of the file
---@param ends mcp-tools.TextEnds of the bytes
---@return boolean
local function has_ends(bufnr, bytes, ends)
  local options = vim.bo[bufnr]
  local is_crlf = ends.crlf or not bytes:find('\n', 1, true)
  local is_ended = ends.last == options.endofline or ends.last and options.fixendofline
  return bytes == '' or is_ended and (is_crlf or options.fileformat ~= 'dos')
end

--- How a check reads the file and pauses.
---@class mcp-tools.DiskReading
---@field read fun(path: string, max_bytes: integer): string?, mcp-tools.Error?
---@field pause fun()

---@type mcp-tools.DiskReading
local SYNC = {
  read = function(path, max_bytes)
    local bytes, fault = read_sync(path, max_bytes)
    return bytes, not bytes and errors.new('tool_error', ('cannot read %s'):format(fault)) or nil
  end,
  pause = function() end,
}

--- Compares a file with the text that its buffer had when it was last read or written.
---@param bufnr integer loaded
---@param path string
---@param reading mcp-tools.DiskReading
---@return 'same'|'other'|nil result 'other' also if that text is unknown; nil: the buffer has changed meanwhile
---@return mcp-tools.Error? err the file cannot be read
local function compare(bufnr, path, reading)
  local tick, known = api.nvim_buf_get_changedtick(bufnr), vim.bo[bufnr].modified and read_stamp.get(bufnr)
  if known and (not known.text or known.saves ~= read_stamp.saves(bufnr)) then
    return 'other' -- the text is unknown, or Neovim has written another one since
  end
  local bytes, err = reading.read(path, open.MAX_BYTES)
  if not bytes or not api.nvim_buf_is_loaded(bufnr) then
    return nil, err
  end
  local text, ends = file_text.as_buffer(bytes, bufnr, reading.pause)
  text = ends.last and text or text .. '\n'
  local has_same
  if known then
    has_same = known.text == read_stamp.hash(text)
  else
    has_same = has_text(bufnr, text, reading.pause) and has_ends(bufnr, bytes, ends)
  end
  if api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_changedtick(bufnr) == tick then
    return has_same and 'same' or 'other'
  end
end

--- Returns whether a plugin reads or writes a file instead of Neovim, so that the buffer may have another text.
---@param bufnr integer
---@return boolean
local function is_converted(bufnr)
  local name = api.nvim_buf_get_name(bufnr)
  return vim.iter(api.nvim_get_autocmds({ event = { 'BufReadCmd', 'BufWriteCmd' } })):any(function(each)
    local subject = each.pattern:find('/', 1, true) and name or vim.fs.basename(name)
    return each.buffer == bufnr or not each.buflocal and fn.match(subject, fn.glob2regpat(each.pattern)) >= 0
  end)
end

--- Lets Neovim compare the state of a file with that of the last read or write.
---@param bufnr integer loaded
---@param path string
---@param has_file boolean
---@return 'same'|'reloaded'|'gone'|'changed'|nil state nil: only the file's text can tell
---@return mcp-tools.Error? err the file cannot be read
local function reported(bufnr, path, has_file)
  if has_file and is_new(bufnr) then
    if vim.bo[bufnr].modified then
      return 'changed'
    end
    local err = reload(bufnr)
    M.notify_servers(path, 'Created')
    return 'reloaded', err
  end
  local tick = api.nvim_buf_get_changedtick(bufnr)
  local reason, err = checktime(bufnr)
  if err then
    return nil, err
  elseif reason == 'deleted' then
    M.notify_servers(path, 'Deleted')
    return 'gone'
  elseif not has_file or reason == 'time' or reason == 'mode' or not api.nvim_buf_is_loaded(bufnr) then
    return 'same'
  elseif api.nvim_buf_get_changedtick(bufnr) ~= tick then
    M.notify_servers(path, 'Changed')
    return 'reloaded'
  end
  return reason == 'conflict' and 'changed' or nil
end

--- Compares a buffer with its file: by what Neovim reports, then by the stamps, then by the text. Reads a file that has
--- changed into its buffer, if that is unmodified.
---@param bufnr integer loaded
---@param path string
---@param stat table? status of its file
---@param reading mcp-tools.DiskReading
---@return mcp-tools.DiskState? state nil: the buffer has changed meanwhile, or autocommands are running
---@return mcp-tools.Error? err if it is 'unreadable'
local function check_file(bufnr, path, stat, reading)
  local known, now = read_stamp.get(bufnr), paths.stamp_of(stat)
  local err = stat and open.unreadable(path, stat)
  if not err and autocommands.are_running() then -- Neovim would ask the user
    err = errors.new('busy', ('Neovim is reading or writing a file; try again to use %s'):format(buffers.shown(bufnr)))
  end
  if err then -- `:checktime` may read it, too
    local is_read = now and known.read == now
    return is_read and 'same' or 'unreadable', not is_read and err or nil
  end
  local state
  state, err = reported(bufnr, path, stat ~= nil)
  if err then
    return 'unreadable', err
  elseif state == 'gone' then
    return state
  elseif state ~= 'changed' and known.read == now then
    return state or 'same'
  elseif state ~= 'changed' and (state or known.other ~= now and is_converted(bufnr)) then
    M.note_read(bufnr, stat)
    return state or 'same'
  end
  local result = 'other'
  if known.other ~= now or not vim.bo[bufnr].modified then
    result, err = compare(bufnr, path, reading)
  end
  if err then
    return 'unreadable', err
  elseif result == 'same' then
    M.note_read(bufnr, stat)
    return 'same'
  elseif result and vim.bo[bufnr].modified then
    if known.other ~= now then
      M.notify_servers(path, 'Changed')
    end
    read_stamp.set(bufnr, { other = now })
    return 'conflict'
  elseif not result or autocommands.are_running() then
    return nil
  end
  err = reload(bufnr) -- Neovim does not report it again
  if err then
    return 'unreadable', err
  end
  M.notify_servers(path, 'Changed')
  M.note_read(bufnr, stat)
  return api.nvim_buf_is_loaded(bufnr) and 'reloaded' or 'same'
end

--- Returns the path of a buffer's file.
---@param bufnr integer
---@return string? path nil: the buffer is not loaded or has no file
local function file_of(bufnr)
  if not api.nvim_buf_is_valid(bufnr) or not api.nvim_buf_is_loaded(bufnr) then
    return nil
  end
  local kind, path = access.buffer_kind(bufnr)
  return kind == 'file' and path or nil
end

--- Compares a buffer with its file without waiting, for a write that follows in the same event-loop iteration. The file
--- is read only if it has changed since the last check.
---@param bufnr integer
---@return mcp-tools.DiskState
---@return mcp-tools.Error? err
function M.check(bufnr)
  local path = file_of(bufnr)
  if not path then
    return 'same'
  end
  local state, err = check_file(bufnr, path, uv.fs_stat(path), SYNC)
  return state or 'same', err
end

--- Returns whether a buffer's file is in the state that was read or written last, as far as that is known.
---@param bufnr integer
---@param path string
---@return boolean
function M.is_current(bufnr, path)
  local stamp = paths.stamp(path)
  return stamp ~= nil and read_stamp.get(bufnr).read == stamp
end

--- Compares a buffer with its file. The callback runs on the main loop, never before this returns.
---@param bufnr integer
---@param cb fun(state: mcp-tools.DiskState, err: mcp-tools.Error?) `err`: the file is 'unreadable'
function M.refresh(bufnr, cb)
  local path, state, err = file_of(bufnr), nil, nil
  local function has_file()
    return path and api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_name(bufnr) == path
  end
  task.run({}, function(work)
    work:await(vim.schedule)
    local reading = {
      read = function(_, max_bytes)
        return read.await(work, path, max_bytes, read.any)
      end,
      pause = time_slice.of(work),
    }
    for i = 1, MAX_TRIES do
      -- Asynchronous: a file system that does not respond blocks only this call.
      local stat = not state and has_file() and work:uv(uv.fs_stat, path)
      if stat and paths.stamp_of(stat) ~= read_stamp.get(bufnr).read and autocommands.are_running() then
        work:await(autocommands.when_over)
        stat = work:uv(uv.fs_stat, path)
      end
      if state or not has_file() then
        break
      end
      state, err = check_file(bufnr, path, stat or nil, i < MAX_TRIES and reading or SYNC)
    end
  end, function(ok, thrown)
    if not ok then
      log.error('a file cannot be compared with its buffer: %s', thrown)
      state, err = 'unreadable', errors.new('execution_error', 'the file cannot be compared; see :McpTools log')
    end
    cb(state or 'same', err)
  end)
end

--- Like `refresh`, for coroutines.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@return mcp-tools.DiskState
---@return mcp-tools.Error? err
function M.await(ctx, bufnr)
  return ctx:await(function(done)
    M.refresh(bufnr, done)
  end)
end

return M
