--- Lock file: one process at a time has it, and may change what it stands for.
---
--- What is done under a lock takes a millisecond. One that is older was left by a process that died, or that slept with
--- the machine; it is taken away, so whoever changes something asks `is_held` just before.

local read_now = require('mcp-tools.files.read_sync')

local uv = vim.uv

local M = {}

local MODE = tonumber('600', 8)
--- A thousand times what a lock is needed for.
local STALE_SECONDS = 2

---@class mcp-tools.LockFile
---@field path string
---@field mark string what stands in it; the number of a file is given to another one soon
local Lock = {}
Lock.__index = Lock

local serial = 0

---@return string unlike any other
local function mark()
  serial = serial + 1
  return ('%d-%d-%x'):format(uv.os_getpid(), serial, uv.hrtime())
end

--- Takes away a lock that nobody has any more.
---@param path string
local function remove_stale(path)
  local found = uv.fs_lstat(path)
  local now = uv.gettimeofday()
  -- A clock that was set back makes an age negative.
  if not found or math.abs(now - found.mtime.sec) <= STALE_SECONDS then
    return
  end
  local aside = ('%s.%s.tmp'):format(path, mark())
  if not uv.fs_rename(path, aside) then
    return
  end
  local taken = uv.fs_lstat(aside)
  if taken and not vim.deep_equal(taken.mtime, found.mtime) then
    uv.fs_link(aside, path) -- another process was quicker, and this one is in use: it goes back
  end
  uv.fs_unlink(aside)
end

--- Takes the lock.
---@param path string
---@return mcp-tools.LockFile? lock
---@return string? err nil when only another process has it
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

--- Is it still ours?
---@return boolean
function Lock:is_held()
  return read_now(self.path, #self.mark + 1) == self.mark
end

--- Gives it back.
function Lock:release()
  if self:is_held() then
    uv.fs_unlink(self.path)
  end
end

return M
