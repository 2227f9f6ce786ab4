--- Watches for changes in the editor and on disk. Each function returns one that stops it.

local buffers = require('mcp-tools.editor.buffer')
local paths = require('mcp-tools.files.paths')
local access = require('mcp-tools.privacy.access')
local timer = require('mcp-tools.util.timer')

local api, uv = vim.api, vim.uv

local M = {}

--- Watches autocommand events.
---@param events string|string[]
---@param fn fun(args: table)
---@return fun() stop
function M.events(events, fn)
  local id = api.nvim_create_autocmd(events, {
    desc = 'mcp-tools: a client has subscribed',
    callback = function(args)
      fn(args) -- ignore its result: true would delete the autocommand
    end,
  })
  return function()
    pcall(api.nvim_del_autocmd, id) -- `:autocmd!` may have deleted it
  end
end

--- Polls a value that has no event.
---@param ms integer
---@param probe fun(): any must be cheap; compared with `==`
---@param changed fun()
---@return fun() stop
function M.poll(ms, probe, changed)
  local last = probe()
  local running = timer.every(ms, function()
    local now = probe()
    if now ~= last then
      last = now
      changed()
    end
  end)
  return function()
    running:stop()
  end
end

--- Watches the text of a buffer, also across reloads.
---@param bufnr integer loaded
---@param changed fun()
---@param gone fun()
---@return fun() stop
local function lines(bufnr, changed, gone)
  local over = false
  api.nvim_buf_attach(bufnr, false, {
    on_lines = function()
      if over then
        return true -- detaches
      end
      changed()
    end,
    on_reload = function()
      if not over then
        changed()
      end
    end,
    on_detach = function()
      if not over then
        over = true
        gone()
      end
    end,
  })
  return function()
    over = true
  end
end

--- Returns the resolved path of a buffer's file.
---@param bufnr integer
---@return string?
function M.path_of(bufnr)
  local name = api.nvim_buf_get_name(bufnr)
  return name ~= '' and paths.resolve(name) or nil
end

--- Watches the text of a file's buffer, even if it is opened, closed or renamed.
---@param path string resolved
---@param changed fun()
---@return fun() stop
function M.text(path, changed)
  local attached, stop_lines
  local function follow()
    local bufnr = buffers.of_path(path)
    if bufnr == attached then
      return
    elseif stop_lines then
      stop_lines()
    end
    attached = bufnr
    stop_lines = bufnr
      and lines(bufnr, changed, function()
        attached, stop_lines = nil, nil
        changed()
      end)
  end
  follow()
  local stop_events = M.events({ 'BufReadPost', 'BufNewFile', 'BufFilePost', 'BufWritePost' }, function(args)
    if args.buf ~= attached and M.path_of(args.buf) ~= path then
      return -- searching all buffers would be slow with many watches
    end
    local before = attached
    follow()
    if attached ~= before then
      changed()
    end
  end)
  return function()
    stop_events()
    if stop_lines then
      stop_lines()
    end
  end
end

--- Starts a libuv watch. Fails if the system has none left.
---@param directory string
---@param on_event fun(err: string?, name: string?)
---@return uv.uv_fs_event_t?
local function start(directory, on_event)
  local handle = uv.new_fs_event()
  if handle and not handle:start(directory, {}, on_event) then
    handle:close()
    return nil
  end
  return handle
end

--- Watches a directory and, because its path may be renamed, deleted or created, the directories above it.
---@param path string resolved
---@param changed fun(name: string?) the changed entry, nil if unknown; may be called in a fast context
---@return (fun())? stop nil: the system has no watches left
function M.directory(path, changed)
  local handles, exists, is_stopped = {}, false, false
  local follow

  local function close()
    for _, handle in ipairs(handles) do
      handle:close()
    end
    handles = {}
  end

  local function follow_again()
    local existed = exists
    if not is_stopped and follow() and (existed or exists) then
      changed(nil)
    end
  end

  --- Watches one directory of the path. `below`: the next one.
  local function add(at, below)
    local own, next_name = vim.fs.basename(at), below and vim.fs.basename(below)
    local handle = start(at, function(err, name)
      if at == path and not err then
        changed(name)
      end
      -- The deletion of the directory is reported under its own name.
      if err or not name or name == own or name == next_name then
        vim.schedule(follow_again)
      end
    end)
    table.insert(handles, handle)
  end

  function follow()
    close()
    local below, missing
    local at = path
    while true do
      local is_there = uv.fs_stat(at) ~= nil
      add(at, below)
      if #handles == 0 and is_there then
        return false
      end
      missing = #handles == 0 and at or missing
      if at == '/' then
        break
      end
      at, below = vim.fs.dirname(at), at
    end
    exists = missing == nil
    if missing and uv.fs_stat(missing) then -- created before the watch started
      vim.schedule(follow_again)
    end
    return true
  end

  if not follow() then
    return nil
  end
  return function()
    is_stopped = true
    close()
  end
end

--- Watches a file on disk through its directory, since many programs write a new file and rename it.
---@param path string resolved
---@param changed fun()
---@return fun() stop
function M.file(path, changed)
  local name = vim.fs.basename(path)
  return M.directory(vim.fs.dirname(path), function(changed_name)
    if changed_name == nil or changed_name == name then
      changed()
    end
  end) or M.events('BufWritePost', function(args)
    if access.path(args.match, vim.fs.dirname(path)) == path then
      changed()
    end
  end)
end

return M
