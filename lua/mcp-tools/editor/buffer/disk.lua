--- Detects files that changed on disk, before their text is read or changed.
---
--- Neovim compares the file with what it has read and runs an autocommand instead of asking the user. It reports a
--- change only once, so a conflict is remembered here until the file or the buffer changes.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local highlighting = require('mcp-tools.editor.buffer.highlighting')
local read_stamp = require('mcp-tools.editor.buffer.read_stamp')
local text_diff = require('mcp-tools.editor.text.diff')
local strings = require('mcp-tools.util.strings')

local api, uv = vim.api, vim.uv

local M = {}

read_stamp.start()

---@alias mcp-tools.DiskState
---| 'same' nothing has changed, or there is no file yet
---| 'reloaded' the file had changed; the buffer now has its text
---| 'conflict' the file has changed and the buffer has unsaved changes
---| 'gone' the file has been deleted

---@type table<integer, string> buffer → stamp of the file when the conflict was detected
local conflicts = {}

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
local function reload(bufnr)
  local is_listed = vim.bo[bufnr].buflisted
  buffers.keep_views(bufnr, function()
    pcall(api.nvim_buf_call, bufnr, function()
      vim.cmd('silent keepalt keepjumps edit!')
    end)
  end)
  if api.nvim_buf_is_valid(bufnr) then -- an autocommand may have deleted it
    vim.bo[bufnr].buflisted = is_listed
  end
  if api.nvim_buf_is_loaded(bufnr) then
    highlighting.guard(bufnr)
  end
end

--- Makes Neovim check the file. An unmodified buffer is read again with the current line breaks and encoding;
--- 'autoread' would keep the earlier ones.
---@param bufnr integer
---@return string? reason `v:fcs_reason` if Neovim reported a change
local function checktime(bufnr)
  local reason
  -- With "edit", Neovim appends an empty line to the text of such a buffer.
  local is_blank = api.nvim_buf_line_count(bufnr) == 1 and api.nvim_buf_get_lines(bufnr, 0, 1, false)[1] == ''
  local hook = api.nvim_create_autocmd('FileChangedShell', {
    buffer = bufnr,
    desc = 'mcp-tools: no question about a file that has changed',
    callback = function()
      reason = vim.v.fcs_reason
      vim.v.fcs_choice = reason == 'changed' and not is_blank and 'edit' or ''
    end,
  })
  local autoread = vim.bo[bufnr].autoread
  vim.bo[bufnr].autoread = false -- otherwise the autocommand does not run
  pcall(vim.cmd, ('silent checktime %d'):format(bufnr))
  pcall(api.nvim_del_autocmd, hook)
  if api.nvim_buf_is_valid(bufnr) then
    vim.bo[bufnr].autoread = autoread
  end
  if reason == 'changed' and is_blank then
    reload(bufnr)
  end
  return reason
end

--- Makes Neovim regard the file as read while the buffer keeps its lines, so that `:w` no longer asks about the change
--- on disk.
---@param bufnr integer loaded
---@return string[]? lines of the file; nil when the file or the buffer is gone
function M.acknowledge(bufnr)
  if not uv.fs_stat(api.nvim_buf_get_name(bufnr)) then
    return nil
  end
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local undoreload = vim.go.undoreload
  vim.go.undoreload = -1 -- keep the undo history of a text of any length
  reload(bufnr)
  vim.go.undoreload = undoreload
  conflicts[bufnr] = nil
  if not api.nvim_buf_is_loaded(bufnr) then
    return nil
  end
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

---@param bufnr integer
---@param path string
---@param stat table? status of its file
---@return mcp-tools.DiskState
local function check_file(bufnr, path, stat)
  local before, now = api.nvim_buf_get_changedtick(bufnr), read_stamp.of(stat)
  if now and is_new(bufnr) then
    if not vim.bo[bufnr].modified then
      reload(bufnr)
      M.notify_servers(path, 'Created')
      return 'reloaded'
    elseif conflicts[bufnr] ~= now then
      conflicts[bufnr] = now
      M.notify_servers(path, 'Created')
    end
    return 'conflict'
  end
  local known = conflicts[bufnr]
  if known and known == now then
    if vim.bo[bufnr].modified then
      return 'conflict'
    end
    reload(bufnr)
  end
  conflicts[bufnr] = nil
  local reason = checktime(bufnr)
  if not api.nvim_buf_is_loaded(bufnr) then
    return 'same'
  elseif reason == 'deleted' then
    M.notify_servers(path, 'Deleted')
    return 'gone'
  elseif reason == 'conflict' then
    -- `stat` may be older than the state that Neovim has just reported, and Neovim reports a state only once.
    conflicts[bufnr] = read_stamp.of(uv.fs_stat(path))
    M.notify_servers(path, 'Changed')
    return 'conflict'
  elseif api.nvim_buf_get_changedtick(bufnr) ~= before then
    highlighting.guard(bufnr)
    M.notify_servers(path, 'Changed')
    return 'reloaded'
  end
  local read = read_stamp.get(bufnr)
  if reason == 'time' or not read then -- the text is the same, or Neovim is trusted that it is
    read_stamp.note({ buf = bufnr })
    return 'same'
  elseif not now or read == now then
    return 'same'
  end
  -- Neovim has reported the change to the user before.
  M.notify_servers(path, 'Changed')
  if vim.bo[bufnr].modified then
    conflicts[bufnr] = now
    return 'conflict'
  end
  reload(bufnr)
  return 'reloaded'
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

--- Compares a buffer with its file without waiting, for a write that follows in the same event-loop iteration.
---@param bufnr integer
---@return mcp-tools.DiskState
function M.check(bufnr)
  local path = file_of(bufnr)
  return path and check_file(bufnr, path, uv.fs_stat(path)) or 'same'
end

--- Compares a buffer with its file. The callback runs on the main loop, never before this returns.
---@param bufnr integer
---@param cb fun(state: mcp-tools.DiskState)
function M.refresh(bufnr, cb)
  local function answer(stat, path)
    vim.schedule(function()
      local has_file = path and api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_name(bufnr) == path
      cb(has_file and check_file(bufnr, path, stat) or 'same')
    end)
  end
  local path = file_of(bufnr)
  if not path then
    return answer(nil, nil)
  end
  -- Asynchronous: a file system that does not respond blocks only this call.
  uv.fs_stat(path, function(_, stat)
    answer(stat, path)
  end)
end

--- Like `refresh`, for coroutines.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@return mcp-tools.DiskState
function M.await(ctx, bufnr)
  return ctx:await(function(done)
    M.refresh(bufnr, done)
  end)
end

return M
