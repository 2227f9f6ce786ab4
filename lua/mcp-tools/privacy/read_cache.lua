--- Cache of file texts for approval questions, which must be shown without waiting for the disk.
---
--- An entry is valid while the file has the same modification time, size and inode.

local read = require('mcp-tools.privacy.read')
local timer = require('mcp-tools.util.timer')

local uv = vim.uv

local M = {}

--- Maximum file size in bytes.
M.MAX_BYTES = 4 * 1024 * 1024
--- Error code of a file that is being read.
M.READING = 'EAGAIN'
--- Maximum number of entries; the oldest are dropped first.
local MAX_KEPT = 8
--- Maximum time that `once_read` waits, in ms.
local MAX_WAIT = 1000

---@class mcp-tools.ReadCacheEntry
---@field path string
---@field stamp string? stamp of the file when it was read
---@field bytes string?
---@field fault string?
---@field code string?
---@field listeners (fun())[]? called when the file has been read; nil: not being read

---@type mcp-tools.ReadCacheEntry[] oldest first
local kept = {}
local reading = 0
---@type (fun())[]
local waiting = {}

---@param path string
---@return string?
local function stamp_of(path)
  local stat = uv.fs_stat(path)
  return stat and ('%d.%d %d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.size, stat.ino) or nil
end

---@param list (fun())[]
local function call_all(list)
  for _, fn in ipairs(list) do
    fn()
  end
end

---@param entry mcp-tools.ReadCacheEntry
local function start(entry)
  reading = reading + 1
  read.read(entry.path, M.MAX_BYTES, function(bytes, err)
    entry.bytes, entry.fault = bytes, err and err.message
    entry.code = err and err.code == 'not_found' and 'ENOENT' or nil
    local listeners = entry.listeners or {}
    entry.listeners, reading = nil, reading - 1
    call_all(listeners)
    if reading == 0 then
      local list = waiting
      waiting = {}
      call_all(list)
    end
  end)
end

--- Returns the cached bytes of a file, otherwise starts to read them.
---@param path string resolved
---@param again? fun() called on the main loop when the file has been read
---@return string? bytes
---@return string? fault
---@return string? code 'ENOENT', or `READING`
function M.get(path, again)
  local stamp, found = stamp_of(path), nil
  for i, entry in ipairs(kept) do
    if entry.path == path and entry.stamp == stamp then
      found = entry
    elseif entry.path == path and not entry.listeners then
      table.remove(kept, i)
      break
    end
  end
  if not found then
    found = { path = path, stamp = stamp, listeners = {} }
    table.insert(kept, found)
    if #kept > MAX_KEPT then
      table.remove(kept, 1)
    end
    start(found)
  end
  if found.listeners then
    table.insert(found.listeners, again)
    return nil, 'the file is being read', M.READING
  end
  return found.bytes, found.fault, found.code
end

--- Returns whether a file is being read.
---@return boolean
function M.is_reading()
  return reading > 0
end

--- Waits for all pending reads, at most a second.
---@param cb fun() called once, on the main loop
function M.once_read(cb)
  local done, expiry = false, nil ---@type boolean, mcp-tools.Timer?
  local function finish()
    if not done then
      done = true
      if expiry then
        expiry:stop()
      end
      cb()
    end
  end
  expiry = timer.after(MAX_WAIT, finish)
  table.insert(waiting, finish)
end

return M
