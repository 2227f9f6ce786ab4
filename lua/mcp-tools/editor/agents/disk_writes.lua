--- Writes of agents on the disk, past the editor: buffers never go stale.

local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local contents = require('mcp-tools.editor.buffer.contents')
local edit = require('mcp-tools.editor.edit')
local log = require('mcp-tools.log')
local review = require('mcp-tools.editor.review')
local task = require('mcp-tools.util.task')
local undo = require('mcp-tools.editor.buffer.undo')
local timer = require('mcp-tools.util.timer')
local watch = require('mcp-tools.editor.watch')

local api = vim.api

local M = {}

--- Folders that are looked after.
local MAX_FOLDERS = 100
--- Programs write a file in several steps, or a new one that takes its place.
local SETTLED_MS = 100
--- The text of before cannot be found while the user types: how often and after how many ms it is tried again.
local MAX_TRIES, RETRY_MS = 20, 500

---@class mcp-tools.WatchedFolder
---@field stop fun()
---@field names table<string, true> of files that are open

---@type table<string, mcp-tools.WatchedFolder>
local folders = {}
---@type table<string, true> paths
local changed = {}
local settling ---@type mcp-tools.Timer?
local started = false

--- The state of the undo tree in which a buffer had the text of its file.
---@type table<integer, integer>
local read_states = {}

--- The buffer has the text of its file now.
---@param bufnr integer
local function note_read(bufnr)
  -- Ends the undo block (`:h undo-break`): what is changed next is no part of this state.
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
  read_states[bufnr] = vim.fn.undotree(bufnr).seq_cur
end

---@type fun(bufnr: integer, path: string, text: string, base: string)
local open_review

--- The user has decided on what the disk has: what was accepted comes into the buffer, which then counts as read.
---@param bufnr integer
---@param text string of the disk, as its lines in a buffer
---@param outcome mcp-tools.ReviewOutcome
function M.take(bufnr, text, outcome)
  local is_decided = outcome.state == 'accepted' or outcome.state == 'rejected'
  if not is_decided or not api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local proposal = outcome.proposals[1]
  local edits = outcome.state == 'accepted' and proposal:edits() or {}
  if #edits > 0 then
    local done, err = edit.apply(bufnr, edits)
    if not done then
      return log.error('what has changed on the disk could not be taken over: %s', err and err.message or '?')
    end
  end
  local lines = disk.acknowledge(bufnr)
  local now = lines and table.concat(lines, '\n') .. '\n'
  if now and now ~= text and vim.bo[bufnr].modified then
    open_review(bufnr, proposal.path, now, text) -- it has changed once more meanwhile
  end
end

--- Opens a review of what has changed on the disk. The user's own unsaved lines are no part of it.
---@param bufnr integer
---@param path string
---@param text string of the disk
---@param base string text of the last read or write
function open_review(bufnr, path, text, base)
  review.open({
    client = { name = 'the disk' },
    key = path,
    title = 'it was changed there, and you have not saved yours',
    files = { { path = path, bufnr = bufnr, text = text, base = base } },
    on_end = function(outcome)
      M.take(bufnr, text, outcome)
    end,
  })
end

--- The text that a buffer had when its file was read or written last.
---@param bufnr integer
---@param ctx mcp-tools.Ctx
---@return string? text
---@return string? fault
local function base_of(bufnr, ctx)
  local texts, err = undo.texts(bufnr, { read_states[bufnr] or undo.saved(bufnr) }, ctx)
  return texts and table.concat(texts[1], '\n') .. '\n', err and err.message
end

--- Offers what the disk has to a buffer with unsaved lines.
---@param bufnr integer
---@param path string
---@param tries? integer
local function offer(bufnr, path, tries)
  if not review.is_attended() then
    return
  end
  local ctx = { on_cancel = function() end } -- nothing cancels it
  local text, base, fault
  task.run(ctx, function(one)
    local call = one --[[@as mcp-tools.Ctx]]
    text = contents.on_disk(call, path, bufnr)
    if text then
      base, fault = base_of(bufnr, call)
    end
  end, function(ok, thrown)
    if not ok or not text or not api.nvim_buf_is_loaded(bufnr) or not vim.bo[bufnr].modified then
      return
    elseif base then
      return open_review(bufnr, path, text, base)
    elseif (tries or 0) < MAX_TRIES then -- the user is typing
      return timer.after(RETRY_MS, function()
        if api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].modified then
          offer(bufnr, path, (tries or 0) + 1)
        end
      end)
    end
    log.warn('%s: what has changed on the disk is not shown: %s', path, tostring(fault or thrown))
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
local function start_watch(folder)
  if vim.tbl_count(folders) >= MAX_FOLDERS then
    return nil
  end
  local watched = { names = {} }
  watched.stop = watch.directory(folder, function(name)
    if name and not watched.names[name] then
      return
    end
    for each in pairs(name and { [name] = true } or watched.names) do
      changed[folder .. '/' .. each] = true
    end
    vim.schedule(function()
      if settling then
        settling:stop()
      end
      settling = timer.after(SETTLED_MS, look_at_all)
    end)
  end)
  if not watched.stop then
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
      watched.stop()
      folders[folder] = nil
    end
  end
  for folder, names in pairs(wanted) do
    local watched = folders[folder] or start_watch(folder)
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
  api.nvim_create_autocmd({ 'BufReadPost', 'BufWritePost', 'FileChangedShellPost' }, {
    group = group,
    desc = 'mcp-tools: the buffer has the text of its file',
    callback = function(args)
      if not vim.bo[args.buf].modified or args.event ~= 'FileChangedShellPost' then
        note_read(args.buf)
      end
    end,
  })
  api.nvim_create_autocmd('BufWipeout', {
    group = group,
    callback = function(args)
      read_states[args.buf] = nil
    end,
  })
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(bufnr) and not vim.bo[bufnr].modified then
      note_read(bufnr)
    end
  end
  api.nvim_create_autocmd('VimLeavePre', { group = group, callback = M.stop })
  follow()
end

--- Ends it.
function M.stop()
  started = false
  pcall(api.nvim_del_augroup_by_name, 'mcp-tools.review.disk')
  for folder, watched in pairs(folders) do
    watched.stop()
    folders[folder] = nil
  end
end

return M
