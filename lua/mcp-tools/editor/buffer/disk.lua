--- Files that others changed on the disk, looked at before their text is read or changed.
---
--- Neovim compares the file with what it read, and tells an autocommand instead of asking the person. It tells once; so
--- a conflict is remembered here until the file or the buffer is another.

local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local text_diff = require('mcp-tools.editor.text.diff')
local strings = require('mcp-tools.util.strings')
local validate = require('mcp-tools.util.validate')
local views = require('mcp-tools.editor.buffer.views')

local api, uv = vim.api, vim.uv

local M = {}

---@alias mcp-tools.DiskState
---| 'same' nothing has changed, or there is no file yet
---| 'reloaded' the file had changed; the buffer has its text now
---| 'conflict' the file has changed, and the buffer has changes that are not saved
---| 'gone' the file has been deleted

--- `FileChangeType` of the protocol.
local CREATED, CHANGED, DELETED = 1, 2, 3

---@type table<integer, string> buffer → what the file was when the conflict came up
local conflicts = {}

---@param stat table?
---@return string?
local function stamp(stat)
  return stat and ('%d.%d %d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.size, stat.ino)
end

--- Is a file of the project that a language server looks after?
---@param client vim.lsp.Client
---@param path string
local function minds(client, path)
  local function below(root)
    return type(root) == 'string' and root ~= '' and vim.startswith(path, strings.directory(root))
  end
  for _, folder in ipairs(client.workspace_folders or {}) do
    if below(vim.uri_to_fname(folder.uri)) then
      return true
    end
  end
  return below(client.config.root_dir)
end

--- Tells language servers of files that have changed on the disk (`workspace/didChangeWatchedFiles`).
---@param path string resolved
---@param kind integer 1 made, 2 changed, 3 deleted
function M.tell_servers(path, kind)
  local params = { changes = { { uri = vim.uri_from_fname(path), type = kind } } }
  for _, client in ipairs(vim.lsp.get_clients()) do
    if minds(client, path) then
      local notify = client.notify
      if vim.fn.has('nvim-0.11') == 1 then
        notify(client, 'workspace/didChangeWatchedFiles', params)
      else
        notify('workspace/didChangeWatchedFiles', params)
      end
    end
  end
end

--- Has Neovim look at the file. A clean buffer is read again: with the line breaks and the encoding of now, which
--- 'autoread' would take to be those of before.
---@param bufnr integer
---@return string? reason Neovim's own, when it has not reloaded
local function checktime(bufnr)
  local reason
  local hook = api.nvim_create_autocmd('FileChangedShell', {
    buffer = bufnr,
    desc = 'mcp-tools: no question about a file that has changed',
    callback = function()
      reason = vim.v.fcs_reason
      vim.v.fcs_choice = reason == 'changed' and 'edit' or ''
    end,
  })
  local autoread = vim.bo[bufnr].autoread
  vim.bo[bufnr].autoread = false -- else the hook is not asked
  pcall(vim.cmd, ('silent checktime %d'):format(bufnr))
  pcall(api.nvim_del_autocmd, hook)
  if api.nvim_buf_is_valid(bufnr) then
    vim.bo[bufnr].autoread = autoread
  end
  return reason
end

--- Reads the file again into a clean buffer of which Neovim thinks that it has been told of the change.
---@param bufnr integer
local function reload(bufnr)
  views.keep(bufnr, function()
    pcall(api.nvim_buf_call, bufnr, function()
      vim.cmd('silent keepalt keepjumps edit!')
    end)
  end)
end

--- Lets Neovim take the file as read while the buffer keeps its lines: `:w` does not ask about the change on the disk
--- any more.
---@param bufnr integer loaded
---@return string[]? lines of the file; nil when the file or the buffer is gone
function M.acknowledge(bufnr)
  if not uv.fs_stat(api.nvim_buf_get_name(bufnr)) then
    return nil
  end
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local undoreload = vim.go.undoreload
  vim.go.undoreload = -1 -- the undo history stays, however long the text is
  reload(bufnr)
  vim.go.undoreload = undoreload
  conflicts[bufnr] = nil
  if not api.nvim_buf_is_loaded(bufnr) then
    return nil
  end
  local lines_on_disk = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local first, last = text_diff.same_lines(lines_on_disk, lines)
  if first < #lines or #lines ~= #lines_on_disk then
    views.keep(bufnr, function()
      api.nvim_buf_call(bufnr, function()
        pcall(vim.cmd --[[@as fun(command: string)]], 'undojoin')
        local kept = vim.list_slice(lines, first + 1, #lines - last)
        api.nvim_buf_set_lines(bufnr, first, #lines_on_disk - last, false, kept)
      end)
    end)
  end
  return lines_on_disk
end

--- Has Neovim never read a file for this buffer, since there was none? `:checktime` would ask the user about one that
--- others have made since, and nothing but `:file` reports it.
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
---@param stat table? of its file
---@return mcp-tools.DiskState
local function look(bufnr, path, stat)
  local before, now = api.nvim_buf_get_changedtick(bufnr), stamp(stat)
  if now and is_new(bufnr) then
    if not vim.bo[bufnr].modified then
      reload(bufnr)
      M.tell_servers(path, CREATED)
      return 'reloaded'
    elseif conflicts[bufnr] ~= now then
      conflicts[bufnr] = now
      M.tell_servers(path, CREATED)
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
    M.tell_servers(path, DELETED)
    return 'gone'
  elseif reason == 'conflict' then
    -- Neovim has looked by now: what `stat` tells of may be older than what it will not tell of again.
    conflicts[bufnr] = stamp(uv.fs_stat(path))
    M.tell_servers(path, CHANGED)
    return 'conflict'
  elseif api.nvim_buf_get_changedtick(bufnr) ~= before then
    M.tell_servers(path, CHANGED)
    return 'reloaded'
  end
  return 'same'
end

--- The path of the file that a buffer shows.
---@param bufnr integer
---@return string? path nil: it is not loaded, or shows something else
local function file_of(bufnr)
  if not api.nvim_buf_is_valid(bufnr) or not api.nvim_buf_is_loaded(bufnr) then
    return nil
  end
  local kind, path = buffer_kind.kind(bufnr)
  return kind == 'file' and path or nil
end

--- Compares a buffer with its file at once, for a write that follows in the same turn of the main loop.
---@param bufnr integer
---@return mcp-tools.DiskState
function M.check(bufnr)
  local path = file_of(bufnr)
  return path and look(bufnr, path, uv.fs_stat(path)) or 'same'
end

--- Looks at the file of a buffer. The callback runs on the main loop, never before this returns.
---@param bufnr integer
---@param cb fun(state: mcp-tools.DiskState)
function M.refresh(bufnr, cb)
  validate('bufnr', bufnr, 'number')
  validate('cb', cb, 'callable')
  local function answer(stat, path)
    vim.schedule(function()
      local same = not path or not api.nvim_buf_is_valid(bufnr) or api.nvim_buf_get_name(bufnr) ~= path
      cb((same or not api.nvim_buf_is_loaded(bufnr)) and 'same' or look(bufnr, path, stat))
    end)
  end
  local path = file_of(bufnr)
  if not path then
    return answer(nil, nil)
  end
  -- Beside the main loop: a file system that does not answer holds up nobody but the call.
  uv.fs_stat(path, function(_, stat)
    answer(stat, path)
  end)
end

return M
