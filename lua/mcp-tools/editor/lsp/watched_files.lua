--- Notifies language servers of changed files on disk (`workspace/didChangeWatchedFiles`) before a request is sent.
---
--- Neovim does so only for servers that ask for it, and on Linux not by default. The first request begins to watch the
--- directories, and reports the files that changed since the server started.

local DirectoryWatch = require('mcp-tools.editor.lsp.directory_watch')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local disk = require('mcp-tools.editor.buffer.disk')
local file_type = require('mcp-tools.files.filetype')
local git = require('mcp-tools.editor.git')
local server_state = require('mcp-tools.editor.lsp.server_state')
local open = require('mcp-tools.editor.buffer.open')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.privacy.read')
local strings = require('mcp-tools.util.strings')
local task = require('mcp-tools.util.task')
local time_slice = require('mcp-tools.util.time_slice')

local uv = vim.uv

local M = {}

--- Maximum size of a file that is read, bytes, and number of files read for one request.
local MAX_FILE, MAX_READ = 1024 * 1024, 50
--- Maximum number of changes in one notification.
local MAX_CHANGES = 5000
local GIT_MS = 5000
--- Maximum number of paths that git is given (for more, it lists the whole root), and of bytes of its output.
local MAX_PATHS, MAX_NAMES = 200, 16 * 1024 * 1024
--- Time that a server needs to read new and changed files of which it was notified, ns: no event reports the end.
local READ_NEW_NS, READ_CHANGED_NS = 1500e6, 400e6
local CHANGED, DELETED = DirectoryWatch.CHANGED, DirectoryWatch.DELETED

---@type table<string, mcp-tools.lsp.DirectoryWatch> by root
local watched = {}

--- Ends the watch of a root.
---@param root string
---@param watch mcp-tools.lsp.DirectoryWatch
local function release(root, watch)
  watch:close()
  if watched[root] == watch then
    watched[root] = nil
  end
end

--- Returns when the first server of a root was started.
---@param root string
---@return integer seconds
local function start_time(root)
  local first = os.time()
  for _, client in ipairs(clients.of(nil)) do
    if vim.list_contains(clients.roots(client), root) then
      first = math.min(first, os.time() - math.ceil((uv.hrtime() - server_state.of(client).since) / 1e9))
    end
  end
  return first
end

--- Files of which servers were notified recently, the oldest first.
---@type { path: string, kind: integer, read_by: integer }[]
local recent = {}
--- Maximum number of remembered files.
local MAX_RECENT = 500
--- Time in which a server has certainly read a new or changed file, ns.
local RECENT_NEW_NS, RECENT_CHANGED_NS = 5e9, 1e9

--- Returns a recently changed file that shows that references are outdated: a new file that contains the name, but no
--- reference, or a deleted file with a reference.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param name string
---@param uris table<string, true> files with references
---@param begun integer ns, when the servers were first asked
---@param asked vim.lsp.Client[]
---@return string? path
---@return integer? read_by ns, when the server should have read it
function M.outdated(ctx, name, uris, begun, asked)
  local word = strings.word_pattern(name)
  local function is_served(path)
    local filetype = file_type.of(path) -- '' if it depends on the text
    for _, client in ipairs(asked) do
      local filetypes = client.config.filetypes ---@diagnostic disable-line: undefined-field
      if not filetypes or filetype == '' or vim.list_contains(filetypes, filetype) then
        return true
      end
    end
    return false
  end
  recent = vim.tbl_filter(function(change)
    return begun <= change.read_by
  end, recent)
  local left = MAX_READ
  for _, change in ipairs(name ~= '' and recent or {}) do -- `recent` is replaced, never extended
    local uri = vim.uri_from_fname(change.path)
    if change.kind == DELETED and uris[uri] then
      return change.path, change.read_by
    elseif change.kind ~= DELETED and not uris[uri] and left > 0 and is_served(change.path) then
      left = left - 1
      local bytes = read.await(ctx, change.path, MAX_FILE, read.any)
      if bytes and bytes:find(word) then
        return change.path, change.read_by
      end
    end
  end
end

--- Returns the resolved paths of open files, whose text servers have from the editor.
---@return table<string, true>
local function open_files()
  local set = {}
  for _, client in ipairs(clients.of(nil)) do
    for bufnr in pairs(client.attached_buffers) do
      local name = vim.api.nvim_buf_is_loaded(bufnr) and vim.api.nvim_buf_get_name(bufnr) or ''
      if name ~= '' then
        set[paths.resolve(name)] = true
      end
    end
  end
  return set
end

local function no_pause() end

--- Returns the changes for a notification, and records files that are not open as recently changed.
---@param changes table<string, integer> path → type
---@param pause? fun()
---@return table[] list
---@return integer read_ns time that a server needs to read them
local function changes_for(changes, pause)
  pause = pause or no_pause
  local list, read_ns, is_open, added = {}, 0, open_files(), {}
  for path, kind in vim.spairs(changes) do
    if kind ~= CHANGED or not is_open[path] then
      read_ns = math.max(read_ns, kind == CHANGED and READ_CHANGED_NS or READ_NEW_NS)
      if #added < MAX_RECENT then
        local read_by = uv.hrtime() + (kind == CHANGED and RECENT_CHANGED_NS or RECENT_NEW_NS)
        table.insert(added, { path = path, kind = kind, read_by = read_by })
      end
    end
    table.insert(list, { uri = vim.uri_from_fname(path), type = kind })
    pause()
  end
  local kept = vim.list_slice(recent, math.max(1, #recent + #added - MAX_RECENT + 1))
  recent = vim.list_extend(kept, added)
  return list, read_ns
end

---@param root string
---@param list table[]
---@param read_ns integer
local function notify(root, list, read_ns)
  if #list == 0 then
    return
  end
  for _, client in ipairs(clients.of(nil)) do
    if vim.list_contains(clients.roots(client), root) then
      for first = 1, #list, MAX_CHANGES do
        local changes = vim.list_slice(list, first, first + MAX_CHANGES - 1)
        clients.notify(client, 'workspace/didChangeWatchedFiles', { changes = changes })
      end
      if read_ns > 0 then
        server_state.of(client).unsettled_until = uv.hrtime() + read_ns
      end
    end
  end
end

--- Returns a function that reports whether git ignores a path below a root. Without a repository nothing is ignored.
---@param ctx mcp-tools.Ctx
---@param root string
---@param some? string[] the paths that will be checked; nil: any
---@param pause fun()
---@return fun(path: string): boolean
local function ignored_below(ctx, root, some, pause)
  local args = { 'ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--directory' }
  if some and #some <= MAX_PATHS then
    table.insert(args, '--')
    for _, path in ipairs(some) do
      table.insert(args, path:sub(#root + 2))
    end
  end
  local done = git.await(args, { ctx = ctx, cwd = root, limit = MAX_NAMES, timeout = GIT_MS })
  local set = {}
  for name in (done.ok and done.stdout or ''):gmatch('[^%z]+') do
    set[root .. '/' .. name:gsub('/$', '')] = true
    pause()
  end
  return function(path)
    while #path > #root do
      if set[path] then
        return true
      end
      path = path:match('^(.*)/') or ''
    end
    return false
  end
end

--- Begins to watch a root directory.
---@param ctx mcp-tools.Ctx
---@param root string
---@param identity string
---@param kind integer type of the changes since the start: `CREATED` if the directory was replaced
local function begin(ctx, root, identity, kind)
  local watch = DirectoryWatch.new(identity)
  watched[root] = watch
  ctx:on_cancel(function()
    if not watch.ready then
      release(root, watch) -- the next request begins again
    end
  end)
  local pause, since, changes = time_slice.of(ctx), start_time(root), {}
  watch:walk(root, pause, ignored_below(ctx, root, nil, pause), function(path)
    watch:note(path)
    local stat = uv.fs_stat(path)
    if stat and stat.mtime.sec >= since then
      changes[path] = kind
    end
  end)
  local list, read_ns = changes_for(changes, pause)
  watch.ready = true
  if watched[root] ~= watch then -- its last server has stopped in the meantime
    return release(root, watch)
  end
  notify(root, list, read_ns)
end

--- Ends watches of directories without servers, and of directories that were replaced.
---@param roots table<string, string> root → identity
local function prune(roots)
  for root, watch in pairs(watched) do
    if roots[root] ~= watch.identity then
      release(root, watch)
    end
  end
end

--- Returns the root directories of servers with their identities. Pending file system events are handled meanwhile.
---@param ctx mcp-tools.Ctx
---@return table<string, string>
local function roots_of(ctx)
  local roots = {}
  for _, client in ipairs(clients.of(nil)) do
    for _, root in ipairs(clients.roots(client)) do
      if roots[root] == nil and paths.is_project(root) then
        local stat = task.uv(ctx, uv.fs_stat, root)
        local born = stat and stat.birthtime -- a new directory often reuses the inode
        roots[root] = stat and ('%d %d %d.%d'):format(stat.dev, stat.ino, born.sec, born.nsec) or nil
      end
    end
  end
  return roots
end

--- Calls that have checked for changes already: one check per call is enough.
---@type table<mcp-tools.Ctx, true>
local checked = setmetatable({}, { __mode = 'k' })

--- Checks the paths of events and notifies servers. If the call is cancelled, unchecked paths are left to the next
--- request.
---@param ctx mcp-tools.Ctx
---@param root string
---@param watch mcp-tools.lsp.DirectoryWatch
---@return table<string, integer> changes
local function catch_up(ctx, root, watch)
  local left, changes, pause, is_finished = watch.changed, {}, time_slice.of(ctx), false
  local list, read_ns
  watch.changed = {}
  local function finish()
    if not is_finished then
      is_finished = true
      watch.changed = vim.tbl_extend('force', watch.changed, left)
      if not list then
        list, read_ns = changes_for(changes)
      end
      notify(root, list, read_ns)
    end
  end
  ctx:on_cancel(finish)
  local unknown = vim.tbl_filter(function(path)
    return not watch:knows(path)
  end, vim.tbl_keys(left))
  local is_ignored = #unknown > 0 and ignored_below(ctx, root, unknown, pause) or function()
    return false
  end
  for _, path in ipairs(vim.tbl_keys(left)) do
    watch:check(path, pause, is_ignored, changes)
    left[path] = nil
    pause()
  end
  list, read_ns = changes_for(changes, pause)
  finish()
  return changes
end

--- Notifies servers of changes on disk since the last request.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param again? boolean even if this call has done so before
function M.notify_servers(ctx, again)
  if checked[ctx] and not again then
    return
  end
  checked[ctx] = true
  open.drop_deleted()
  local roots, before = roots_of(ctx), vim.tbl_extend('force', {}, watched)
  prune(roots)
  for root, identity in pairs(roots) do
    local watch = watched[root]
    if not watch then
      begin(ctx, root, identity, before[root] and DirectoryWatch.CREATED or CHANGED)
    elseif watch.ready and next(watch.changed) then
      for path in pairs(catch_up(ctx, root, watch)) do
        local bufnr = buffers.of_path(path)
        if bufnr then
          disk.await(ctx, bufnr)
        end
      end
    end
  end
end

return M
