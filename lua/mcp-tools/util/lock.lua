--- Lock files between processes.
---
--- A lock is held for about a millisecond. An older one was left by a process that died or was suspended, and is
--- removed; so a holder checks `is_held` right before its change.

local read_sync = require('mcp-tools.util.read_sync')

local uv = vim.uv

local M = {}

local MODE = tonumber('600', 8)
--- Age of a stale lock, much longer than any lock is held.
local STALE_SECONDS = 2

---@class mcp-tools.LockFile
---@field path string
---@field mark string content of the file; inodes are reused, so they do not identify it
local Lock = {}
Lock.__index = Lock

local serial = 0

---@return string mark unique
local function mark()
  serial = serial + 1
  return ('%d-%d-%x'):format(uv.os_getpid(), serial, uv.hrtime())
end

--- Removes a stale lock.
---@param path string
local function remove_stale(path)
  local found = uv.fs_lstat(path)
  local now = uv.gettimeofday()
  -- The age is negative after the clock was set back.
  if not found or math.abs(now - found.mtime.sec) <= STALE_SECONDS then
    return
  end
  local aside = ('%s.%s.tmp'):format(path, mark())
  if not uv.fs_rename(path, aside) then
    return
  end
  local taken = uv.fs_lstat(aside)
  if taken and not vim.deep_equal(taken.mtime, found.mtime) then
    uv.fs_link(aside, path) -- another process has just taken it: restore it
  end
  uv.fs_unlink(aside)
end

--- Acquires the lock.
---@param path string
---@return mcp-tools.LockFile? lock
---@return string? err nil: another process holds it
function M.take(path)
  local fd, err, code = uv.fs_open(path, 'wx', MODE)
  if not fd and code == 'EEXIST' then
    remove_stale(path)
    return nil
  elseif not fd then
    return nil, ('cannot write %s: %s'):format(path, err)
  end
  local lock = setmetatable({ path = path, mark = mark() }, Lock)
  local written, write_err = uv.fs_write(fd, lock.mark, 0)
  uv.fs_close(fd)
  if written ~= #lock.mark then
    uv.fs_unlink(path)
    return nil, ('cannot write %s: %s'):format(path, write_err or 'the disk is full')
  end
  return lock
end

--- Returns whether the lock is still ours.
---@return boolean
function Lock:is_held()
  return read_sync(self.path, #self.mark + 1) == self.mark
end

--- Releases the lock.
function Lock:release()
  if self:is_held() then
    uv.fs_unlink(self.path)
  end
end

return M
