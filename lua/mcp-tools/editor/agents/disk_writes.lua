--- Watches the directories of open files, so that buffers follow what agents write to disk.

local access = require('mcp-tools.privacy.access')
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

--- Maximum number of watched directories.
local MAX_DIRECTORIES = 100
--- Delay after the last change, since files are often written in several steps, in ms.
local DEBOUNCE_MS = 100
--- Maximum number of attempts to read the earlier text, which fail while the user types, and delay between them in ms.
local MAX_TRIES, RETRY_MS = 20, 500

---@class mcp-tools.WatchedDirectory
---@field stop fun()
---@field names table<string, true> names of open files

---@type table<string, mcp-tools.WatchedDirectory>
local directories = {}
---@type table<string, true> paths of changed files
local changed = {}
local debounce ---@type mcp-tools.Timer?
local started = false

--- Undo state in which a buffer had the text of its file.
---@type table<integer, integer>
local read_states = {}

--- Notes that a buffer has the text of its file.
---@param bufnr integer
local function note_read(bufnr)
  -- Close the undo block (`:h undo-break`), so that later changes are not part of this state.
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
  read_states[bufnr] = vim.fn.undotree(bufnr).seq_cur
end

---@param lines string[]
---@return string
local function text_of(lines)
  return table.concat(lines, '\n') .. '\n'
end

---@type fun(bufnr: integer, path: string, text: string, base: string)
local open_review

--- Applies the accepted changes of the file to the buffer, which is then regarded as read.
---@param bufnr integer
---@param text string text of the file, as lines of a buffer
---@param outcome mcp-tools.ReviewOutcome
function M.merge(bufnr, text, outcome)
  local is_decided = outcome.state == 'accepted' or outcome.state == 'rejected'
  if not is_decided or not api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local proposal = outcome.proposals[1]
  local edits = outcome.state == 'accepted' and proposal:edits() or {}
  if #edits > 0 then
    local done, err = edit.apply(bufnr, edits)
    if not done then
      return log.error('cannot apply the changes of a file on disk: %s', err and err.message or '?')
    end
  end
  local lines = disk.acknowledge(bufnr)
  local now = lines and text_of(lines)
  if now and now ~= text and vim.bo[bufnr].modified then
    open_review(bufnr, proposal.path, now, text) -- it has changed again
  end
end

--- Opens a review of a file's changes on disk. The user's unsaved changes are not part of it.
---@param bufnr integer
---@param path string
---@param text string text on disk
---@param base string text of the last read or write
function open_review(bufnr, path, text, base)
  review.open({
    client = { name = 'the disk' },
    key = path,
    title = 'changed on disk while you have unsaved changes',
    files = { { path = path, bufnr = bufnr, text = text, base = base } },
    on_end = function(outcome)
      M.merge(bufnr, text, outcome)
    end,
  })
end

--- Returns the text of a buffer when its file was last read or written.
---@param bufnr integer
---@param ctx mcp-tools.Ctx
---@return string? text
---@return string? fault
local function base_of(bufnr, ctx)
  local texts, err = undo.texts(bufnr, { read_states[bufnr] or undo.saved(bufnr) }, ctx)
  return texts and text_of(texts[1]), err and err.message
end

--- Opens a review of the text on disk for a buffer with unsaved changes.
---@param bufnr integer
---@param path string
---@param tries? integer
local function propose(bufnr, path, tries)
  if not review.is_attended() then
    return
  end
  local ctx = { on_cancel = function() end } -- nothing cancels it
  local text, base, fault
  task.run(ctx, function(one)
    local call = one --[[@as mcp-tools.Ctx]]
    local lines = contents.on_disk(call, path, bufnr)
    if lines then
      text = text_of(lines)
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
          propose(bufnr, path, (tries or 0) + 1)
        end
      end)
    end
    log.warn('%s: its changes on disk cannot be shown: %s', path, tostring(fault or thrown))
  end)
end

--- Returns the local or global value of 'autoread'.
---@param bufnr integer
---@return boolean
local function has_autoread(bufnr)
  local own = vim.bo[bufnr].autoread
  if own == nil then
    return vim.go.autoread
  end
  return own
end

---@param path string
local function check(path)
  local bufnr = buffers.of_path(path)
  if not bufnr then
    return
  elseif not vim.bo[bufnr].modified and not has_autoread(bufnr) then
    return -- the user wants Neovim to ask
  end
  disk.refresh(bufnr, function(state)
    if state == 'conflict' then
      propose(bufnr, path)
    end
  end)
end

local function check_changed()
  local paths = changed
  changed = {}
  for path in pairs(paths) do
    log.guard('checking a changed file', check, path)
  end
end

---@param directory string
---@return mcp-tools.WatchedDirectory?
local function start_watch(directory)
  if vim.tbl_count(directories) >= MAX_DIRECTORIES then
    return nil
  end
  local watched = { names = {} }
  watched.stop = watch.directory(directory, function(name)
    if name and not watched.names[name] then
      return
    end
    for entry in pairs(name and { [name] = true } or watched.names) do
      changed[directory .. '/' .. entry] = true
    end
    vim.schedule(function()
      if debounce then
        debounce:stop()
      end
      debounce = timer.after(DEBOUNCE_MS, check_changed)
    end)
  end)
  if not watched.stop then
    return nil
  end
  directories[directory] = watched
  return watched
end

--- Watches the directories of the open files only.
local function follow()
  local wanted = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local kind, path = 'other', nil
    if api.nvim_buf_is_loaded(bufnr) then
      kind, path = access.buffer_kind(bufnr)
    end
    if kind == 'file' and path then
      local directory, name = path:match('^(.*)/([^/]+)$')
      if directory then
        wanted[directory] = wanted[directory] or {}
        wanted[directory][name] = true
      end
    end
  end
  for directory, watched in pairs(directories) do
    if not wanted[directory] then
      watched.stop()
      directories[directory] = nil
    end
  end
  for directory, names in pairs(wanted) do
    local watched = directories[directory] or start_watch(directory)
    if watched then
      watched.names = names
    end
  end
end

--- Starts watching. Further calls do nothing.
function M.start()
  if started then
    return
  end
  started = true
  local group = api.nvim_create_augroup('mcp-tools.review.disk', {})
  api.nvim_create_autocmd({ 'BufReadPost', 'BufWritePost', 'BufFilePost', 'BufUnload' }, {
    group = group,
    desc = 'mcp-tools: watch the directories of open files',
    callback = timer.soon(follow),
  })
  api.nvim_create_autocmd({ 'BufReadPost', 'BufWritePost', 'FileChangedShellPost' }, {
    group = group,
    desc = 'mcp-tools: note that a buffer has the text of its file',
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

--- Stops watching.
function M.stop()
  started = false
  pcall(api.nvim_del_augroup_by_name, 'mcp-tools.review.disk')
  for directory, watched in pairs(directories) do
    watched.stop()
    directories[directory] = nil
  end
end

return M
