--- Writes of agents on the disk, past the editor: buffers never go stale.
---
--- Receives: changes of files that are open, whoever makes them, from the time on that an agent is there.
--- Sends: the text of the disk to buffers without changes, as 'autoread' says; to the others a review of it.
--- Does not know about: agents, how a review is shown.

local buffer_kind = require('mcp-tools.files.buffer_kind')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local disk_lines = require('mcp-tools.editor.buffer.disk_lines')
local edit = require('mcp-tools.editor.edit')
local log = require('mcp-tools.log')
local review = require('mcp-tools.editor.review')
local task = require('mcp-tools.util.task')
local timer = require('mcp-tools.util.timer')

local api, uv = vim.api, vim.uv

local M = {}

--- Folders that are looked after.
local MAX_FOLDERS = 100
--- Programs write a file in several steps, or a new one that takes its place.
local SETTLED_MS = 100

---@class mcp-tools.WatchedFolder
---@field handle uv.uv_fs_event_t
---@field names table<string, true> of files that are open

---@type table<string, mcp-tools.WatchedFolder>
local folders = {}
---@type table<string, true> paths
local changed = {}
local settling ---@type mcp-tools.Timer?
local started = false

--- The person has taken what the disk has, or a part of it.
---@param bufnr integer
---@param text string of the disk
---@param outcome mcp-tools.ReviewOutcome
function M.take(bufnr, text, outcome)
  local proposal = outcome.proposals[1]
  local edits = outcome.state == 'accepted' and proposal:edits() or {}
  if #edits == 0 or not api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local done, err = edit.apply(bufnr, edits)
  if not done then
    return log.error('what has changed on the disk could not be taken over: %s', err and err.message or '?')
  end
  local now = table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n') .. '\n'
  if now == text then -- nothing of the person's is left: it is the file again
    vim.bo[bufnr].modified = false
    disk.refresh(bufnr, function() end)
  end
end

--- Offers what the disk has, against what the person has not saved.
---@param bufnr integer
---@param path string
local function offer(bufnr, path)
  if not review.is_attended() then
    return
  end
  task.run({}, function(one)
    return disk_lines.await(one --[[@as mcp-tools.Ctx]], path, bufnr)
  end, function(ok, text)
    if not ok or not text or not api.nvim_buf_is_loaded(bufnr) or not vim.bo[bufnr].modified then
      return
    end
    review.open({
      client = { name = 'the disk' },
      key = path,
      title = 'it was changed there, and you have not saved yours',
      files = { { path = path, bufnr = bufnr, text = text } },
      on_end = function(outcome)
        M.take(bufnr, text, outcome)
      end,
    })
  end)
end

--- 'autoread' of a buffer, or that of all.
---@param bufnr integer
---@return boolean
local function reads_by_itself(bufnr)
  local own = vim.bo[bufnr].autoread
  if own == nil then
    return vim.go.autoread
  end
  return own
end

---@param path string
local function look(path)
  local bufnr = buffers.of_path(path)
  if not bufnr then
    return
  elseif not vim.bo[bufnr].modified and not reads_by_itself(bufnr) then
    return -- the person wants to be asked by Neovim
  end
  disk.refresh(bufnr, function(state)
    if state == 'conflict' then
      offer(bufnr, path)
    end
  end)
end

local function look_at_all()
  local paths = changed
  changed = {}
  for path in pairs(paths) do
    log.guard('looking at a file that has changed', look, path)
  end
end

---@param folder string
---@return mcp-tools.WatchedFolder?
local function watch(folder)
  if vim.tbl_count(folders) >= MAX_FOLDERS then
    return nil
  end
  local handle = uv.new_fs_event()
  if not handle then
    return nil
  end
  local watched = { handle = handle, names = {} }
  local ok = handle:start(folder, {}, function(_, name)
    if not name or not watched.names[name] then
      return
    end
    changed[folder .. '/' .. name] = true
    vim.schedule(function()
      if settling then
        settling:stop()
      end
      settling = timer.after(SETTLED_MS, look_at_all)
    end)
  end)
  if not ok then
    handle:close()
    return nil
  end
  folders[folder] = watched
  return watched
end

--- Looks after the files that are open, and no others.
local function follow()
  local wanted = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local kind, path = 'other', nil
    if api.nvim_buf_is_loaded(bufnr) then
      kind, path = buffer_kind.kind(bufnr)
    end
    if kind == 'file' and path then
      local folder, name = path:match('^(.*)/([^/]+)$')
      if folder then
        wanted[folder] = wanted[folder] or {}
        wanted[folder][name] = true
      end
    end
  end
  for folder, watched in pairs(folders) do
    if not wanted[folder] then
      watched.handle:close()
      folders[folder] = nil
    end
  end
  for folder, names in pairs(wanted) do
    local watched = folders[folder] or watch(folder)
    if watched then
      watched.names = names
    end
  end
end

--- Begins; once is enough.
function M.start()
  if started then
    return
  end
  started = true
  local due = false
  local function follow_later()
    if not due then
      due = true
      vim.schedule(function()
        due = false
        follow()
      end)
    end
  end
  local group = api.nvim_create_augroup('mcp-tools.review.disk', {})
  api.nvim_create_autocmd({ 'BufReadPost', 'BufWritePost', 'BufFilePost', 'BufUnload' }, {
    group = group,
    desc = 'mcp-tools: files that agents write are looked at while they are open',
    callback = follow_later,
  })
  api.nvim_create_autocmd('VimLeavePre', { group = group, callback = M.stop })
  follow()
end

--- Ends it.
function M.stop()
  started = false
  pcall(api.nvim_del_augroup_by_name, 'mcp-tools.review.disk')
  for folder, watched in pairs(folders) do
    watched.handle:close()
    folders[folder] = nil
  end
end

return M
