--- Discovery files on the disk: written at once and for this user alone, taken away, and what is left of editors that
--- have died.
---
--- Receives: paths and texts. Sends: whether it was done, or why not, without waiting for the disk.
--- Does not know about: companions, what the texts say, when they change.
---
--- The folders belong to agents, who make them as they like: below a folder of another user, or one that anybody may
--- change, nothing is written. A name that begins with a dot is none that an agent looks for.

local uv = vim.uv

local M = {}

local FILE_MODE, DIR_MODE = tonumber('600', 8), tonumber('700', 8)
local ALL_WRITE, STICKY, OTHERS = tonumber('002', 8), tonumber('1000', 8), tonumber('077', 8)

--- Bytes of a file of ours; a longer one was not written by us.
M.MAX_BYTES = 64 * 1024

--- May others put a file of theirs in the place of ours? Not when each folder on the way is ours or the system's, and
--- what all may write to keeps names to their owners.
---@param ctx mcp-tools.Task
---@param folder string real path
---@return string? fault
local function way_fault(ctx, folder)
  local uid = uv.getuid and uv.getuid()
  local place = folder
  while uid do
    local stat, err = ctx:uv(uv.fs_lstat, place)
    if not stat then
      return err
    elseif stat.uid ~= uid and stat.uid ~= 0 then
      return ('%s belongs to another user (uid %d)'):format(place, stat.uid)
    elseif bit.band(stat.mode, ALL_WRITE) ~= 0 and bit.band(stat.mode, STICKY) == 0 then
      return ('%s can be written by other users: run `chmod o-w %s`'):format(place, vim.fn.shellescape(place))
    end
    local parent = vim.fs.dirname(place)
    if parent == place then
      break
    end
    place = parent
  end
end

--- Makes a folder, and those above it, that is ours alone.
---@param ctx mcp-tools.Task
---@param folder string
---@return string? real path
---@return string? fault
local function private_folder(ctx, folder)
  local missing, place = {}, folder
  while not ctx:uv(uv.fs_stat, place) do
    table.insert(missing, 1, vim.fs.basename(place))
    local parent = vim.fs.dirname(place)
    if parent == place then
      return nil, folder .. ': there is no such place'
    end
    place = parent
  end
  local real, err = ctx:uv(uv.fs_realpath, place)
  local fault = not real and err or way_fault(ctx, real)
  for _, name in ipairs(fault and {} or missing) do
    real = vim.fs.joinpath(real, name)
    local made, why = ctx:uv(uv.fs_mkdir, real, DIR_MODE)
    if not made then
      return nil, why
    end
  end
  local stat = not fault and ctx:uv(uv.fs_stat, real)
  if fault or not stat then
    return nil, fault or folder .. ' is gone'
  elseif stat.type ~= 'directory' then
    return nil, folder .. ' is no folder'
  elseif uv.getuid and stat.uid ~= uv.getuid() then
    return nil, ('%s belongs to another user (uid %d)'):format(folder, stat.uid)
  elseif uv.getuid and bit.band(stat.mode, OTHERS) ~= 0 then
    local closed, why = ctx:uv(uv.fs_chmod, real, DIR_MODE)
    if not closed then
      return nil, why
    end
  end
  return real
end

local serial = 0

--- Puts a text into a file: a reader sees all of it or what was there before.
---@param ctx mcp-tools.Task
---@param path string
---@param text string
---@return boolean ok
---@return string? fault
function M.write(ctx, path, text)
  local folder, fault = private_folder(ctx, vim.fs.dirname(path))
  if not folder then
    return false, fault
  end
  serial = serial + 1
  local name = vim.fs.basename(path)
  local temporary = vim.fs.joinpath(folder, ('.%s.%d-%d'):format(name, uv.os_getpid(), serial))
  ctx:uv(uv.fs_unlink, temporary) -- of an earlier process with our id
  local fd, err = ctx:uv(uv.fs_open, temporary, 'wx', FILE_MODE)
  if not fd then
    return false, err
  end
  local written, write_err = ctx:uv(uv.fs_write, fd, text, 0)
  ctx:uv(uv.fs_close, fd)
  local ok = written == #text
  if ok then
    ok, write_err = ctx:uv(uv.fs_rename, temporary, vim.fs.joinpath(folder, name))
  end
  if not ok then
    ctx:uv(uv.fs_unlink, temporary)
    return false, write_err or 'the disk is full'
  end
  return true
end

---@param ctx mcp-tools.Task
---@param path string
function M.remove(ctx, path)
  ctx:uv(uv.fs_unlink, path)
end

--- The text of a file that may be ours.
---@param ctx mcp-tools.Task
---@param path string
---@return string?
function M.read(ctx, path)
  local stat = ctx:uv(uv.fs_lstat, path)
  if not stat or stat.type ~= 'file' or stat.size > M.MAX_BYTES then
    return nil
  end
  local fd = ctx:uv(uv.fs_open, path, 'r', 0)
  local text = fd and ctx:uv(uv.fs_read, fd, M.MAX_BYTES, 0)
  if fd then
    ctx:uv(uv.fs_close, fd)
  end
  return type(text) == 'string' and text or nil
end

--- Names in a folder.
---@param ctx mcp-tools.Task
---@param folder string
---@return string[]
function M.names(ctx, folder)
  local scan, names = ctx:uv(uv.fs_scandir, folder), {}
  while scan do
    local name = uv.fs_scandir_next(scan)
    if not name then
      break
    end
    names[#names + 1] = name
  end
  return names
end

--- What tells a socket from another of the same path.
---@param stat uv.fs_stat.result
---@return string
local function mark_of(stat)
  return ('%s:%s.%s'):format(stat.ino, stat.mtime.sec, stat.mtime.nsec)
end

--- What tells the socket of an editor from that of a later one; nil where it is no file.
---@param socket string
---@return string?
function M.mark(socket)
  local stat = uv.fs_lstat(socket)
  return stat and mark_of(stat) or nil
end

--- Does an editor live? Ids of processes come again: its socket must be the one that it had, and answer.
---@param ctx mcp-tools.Task
---@param editor { pid: integer, socket: string?, mark: string? }
---@return boolean
function M.is_alive(ctx, editor)
  local ok, _, code = uv.kill(editor.pid, 0)
  if ok ~= 0 and code == 'ESRCH' then
    return false
  elseif not editor.mark then
    return true -- its address is no file: there is nothing else to go by
  end
  local stat = ctx:uv(uv.fs_lstat, editor.socket)
  if not stat or mark_of(stat) ~= editor.mark then
    return false
  end
  local pipe = assert(uv.new_pipe(false))
  local connected = ctx:uv(pipe.connect, pipe, editor.socket)
  pipe:close()
  return connected ~= nil
end

return M
