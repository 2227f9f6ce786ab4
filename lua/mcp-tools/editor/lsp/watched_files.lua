--- Watched files: what others change on the disk, noticed, and told to language servers before they are asked.
---
--- Neovim tells servers of files only where they ask for it, and on Linux not by default. Folders are watched from the
--- first question on; what changed since the editor started is told then.

local FolderWatch = require('mcp-tools.editor.lsp.folder_watch')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local disk = require('mcp-tools.editor.buffer.disk')
local git = require('mcp-tools.editor.git')
local server_state = require('mcp-tools.editor.lsp.server_state')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.privacy.read')
local time_slice = require('mcp-tools.util.time_slice')

local uv = vim.uv

local M = {}

--- Bytes of a file that is read, and files that are read for one question.
local MAX_FILE, MAX_READ = 1024 * 1024, 50
--- Changes in one message.
local MAX_CHANGES = 5000
--- Paths that git is asked about one by one; of more it is asked about the whole folder. Bytes of its answer.
local GIT_MS = 5000
local MAX_PATHS, MAX_NAMES = 200, 16 * 1024 * 1024
--- A server takes its time to look at what it was told of, and says nothing when it has; ns.
local LOOKS_NEW, LOOKS_CHANGED = 1500e6, 400e6
local CHANGED, DELETED = FolderWatch.CHANGED, FolderWatch.DELETED

---@type table<string, mcp-tools.lsp.FolderWatch> by root
local watched = {}

--- Ends the watch of a root.
---@param root string
---@param of mcp-tools.lsp.FolderWatch
local function release(root, of)
  of:close()
  if watched[root] == of then
    watched[root] = nil
  end
end

--- When the first server of a root was started, or when the editor was, which is not later. Its socket tells that.
---@param root string
---@return integer seconds
local function started(root)
  local stat = vim.v.servername ~= '' and uv.fs_stat(vim.v.servername)
  local first = os.time()
  for _, client in ipairs(clients.of(nil)) do
    if vim.list_contains(clients.roots(client), root) then
      local of = server_state.of(client)
      local ago = math.ceil((uv.hrtime() - of.since) / 1e9)
      first = math.min(first, of.late and stat and stat.mtime.sec or os.time() - ago)
    end
  end
  return first
end

--- Files of which servers have just been notified, the oldest first.
---@type { path: string, kind: integer, at: integer }[]
local recent = {}
--- Files of which it is remembered; among more than that nobody asks for one.
local MAX_RECENT = 500
--- So long the server may not have looked at one of them, ns.
local DOUBT_NEW, DOUBT_CHANGED = 5e9, 1e9

--- Do the places where a name is used lack a file that has just been made and has the name, or name one that is gone?
---@param ctx mcp-tools.Ctx in a coroutine
---@param name string
---@param uris table<string, true>
---@return boolean
function M.lacks(ctx, name, uris)
  recent = vim.tbl_filter(function(change)
    return uv.hrtime() - change.at <= (change.kind == CHANGED and DOUBT_CHANGED or DOUBT_NEW)
  end, recent)
  local left = MAX_READ
  for _, change in ipairs(name ~= '' and recent or {}) do -- a table that others do not add to
    local uri = vim.uri_from_fname(change.path)
    if change.kind == DELETED and uris[uri] then
      return true
    elseif change.kind ~= DELETED and not uris[uri] and left > 0 then
      left = left - 1
      local bytes = ctx:await(function(done)
        read.read(change.path, MAX_FILE, done, function()
          return true -- its text goes nowhere
        end)
      end)
      if bytes and bytes:find(name, 1, true) then
        return true
      end
    end
  end
  return false
end

--- Resolved paths of files that servers know from the editor: their text there is what counts.
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

--- What is told of changes; what is not open is in doubt from now on.
---@param changes table<string, integer> path → type
---@param pause? fun()
---@return table[] list
---@return integer looks ns that a server takes to look at them
local function message(changes, pause)
  pause = pause or no_pause
  local list, looks, known, doubted = {}, 0, open_files(), {}
  for path, kind in vim.spairs(changes) do
    if kind ~= CHANGED or not known[path] then
      looks = math.max(looks, kind == CHANGED and LOOKS_CHANGED or LOOKS_NEW)
      if #doubted < MAX_RECENT then
        table.insert(doubted, { path = path, kind = kind, at = uv.hrtime() })
      end
    end
    table.insert(list, { uri = vim.uri_from_fname(path), type = kind })
    pause()
  end
  local kept = vim.list_slice(recent, math.max(1, #recent + #doubted - MAX_RECENT + 1))
  recent = vim.list_extend(kept, doubted)
  return list, looks
end

---@param root string
---@param list table[]
---@param looks integer
local function tell(root, list, looks)
  if #list == 0 then
    return
  end
  for _, client in ipairs(clients.of(nil)) do
    if vim.list_contains(clients.roots(client), root) then
      for first = 1, #list, MAX_CHANGES do
        local changes = vim.list_slice(list, first, first + MAX_CHANGES - 1)
        clients.notify(client, 'workspace/didChangeWatchedFiles', { changes = changes })
      end
      if looks > 0 then
        server_state.of(client).unsettled = uv.hrtime() + looks
      end
    end
  end
end

--- What git ignores below a root: among some paths, or all of it. Nothing where git does not know the folder.
---@param ctx mcp-tools.Ctx
---@param root string
---@param some? string[]
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

--- Begins to watch a root.
---@param ctx mcp-tools.Ctx
---@param root string
---@param identity string
local function begin(ctx, root, identity)
  local of = FolderWatch.new(identity)
  watched[root] = of
  ctx:on_cancel(function()
    if not of.ready then
      release(root, of) -- half of it is none: the next question begins anew
    end
  end)
  local pause, since, changes = time_slice.of(ctx), started(root), {}
  of:walk(root, pause, ignored_below(ctx, root, nil, pause), function(path)
    of:note(path)
    local stat = uv.fs_stat(path)
    if stat and stat.mtime.sec >= since then
      changes[path] = CHANGED
    end
  end)
  local list, looks = message(changes, pause)
  of.ready = true
  if watched[root] ~= of then -- its last server has gone meanwhile
    return release(root, of)
  end
  tell(root, list, looks)
end

--- Ends watches of folders that no server works in any more, or that are not the same as they were.
---@param roots table<string, string> → identity
local function prune(roots)
  for root, of in pairs(watched) do
    if roots[root] ~= of.identity then
      release(root, of)
    end
  end
end

--- What tells a folder from another one of its path. A new one is often given the number that the old one had.
---@param stat table
---@return string
local function identity_of(stat)
  return ('%d %d %d.%d'):format(stat.dev, stat.ino, stat.birthtime.sec, stat.birthtime.nsec)
end

--- Folders that servers work in, with what tells them apart. What the system has to say by now is heard meanwhile.
---@param ctx mcp-tools.Ctx
---@return table<string, string>
local function roots_of(ctx)
  local roots = {}
  for _, client in ipairs(clients.of(nil)) do
    for _, root in ipairs(clients.roots(client)) do
      if roots[root] == nil and paths.is_project(root) then
        local stat = ctx:await(function(done)
          uv.fs_stat(
            root,
            vim.schedule_wrap(function(_, stat)
              done(stat)
            end)
          )
        end)
        roots[root] = stat and identity_of(stat) or nil
      end
    end
  end
  return roots
end

--- Calls whose question has been prepared: several requests of one call are one question.
---@type table<mcp-tools.Ctx, true>
local told = setmetatable({}, { __mode = 'k' })

--- Looks at what events have named, and tells of it. Of a call that ends meanwhile nothing is lost: what it has looked
--- at is told, the rest is left to the next one.
---@param ctx mcp-tools.Ctx
---@param root string
---@param of mcp-tools.lsp.FolderWatch
---@return table<string, integer> changes
local function catch_up(ctx, root, of)
  local left, changes, pause, over = of.changed, {}, time_slice.of(ctx), false
  local list, looks
  of.changed = {}
  local function finish()
    if not over then
      over = true
      of.changed = vim.tbl_extend('force', of.changed, left)
      if not list then
        list, looks = message(changes)
      end
      tell(root, list, looks)
    end
  end
  ctx:on_cancel(finish)
  local unknown = vim.tbl_filter(function(path)
    return not of:knows(path)
  end, vim.tbl_keys(left))
  local is_ignored = #unknown > 0 and ignored_below(ctx, root, unknown, pause) or function()
    return false
  end
  for _, path in ipairs(vim.tbl_keys(left)) do
    of:look(path, pause, is_ignored, changes)
    left[path] = nil
    pause()
  end
  list, looks = message(changes, pause)
  finish()
  return changes
end

--- Tells the servers what has changed on the disk since the last question.
---@param ctx mcp-tools.Ctx in a coroutine
---@param again? boolean also when it was done in this call
function M.tell(ctx, again)
  if told[ctx] and not again then
    return
  end
  told[ctx] = true
  local roots = roots_of(ctx)
  prune(roots)
  for root, identity in pairs(roots) do
    local of = watched[root]
    if not of then
      begin(ctx, root, identity)
    elseif of.ready and next(of.changed) then
      for path in pairs(catch_up(ctx, root, of)) do
        local bufnr = buffers.of_path(path)
        if bufnr then
          ctx:await(function(done)
            disk.refresh(bufnr, done)
          end)
        end
      end
    end
  end
end

return M
