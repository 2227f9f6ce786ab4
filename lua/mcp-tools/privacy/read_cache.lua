--- Texts of files for questions: what is shown of them is made at once, and no disk is waited for meanwhile.
---
--- What was read counts as long as the file has the same time, size and number.

local read = require('mcp-tools.privacy.read')
local timer = require('mcp-tools.util.timer')

local uv = vim.uv

local M = {}

--- Bytes: larger files are not compared while the person waits.
M.MAX_BYTES = 4 * 1024 * 1024
--- What a file is called that is being read, where others have the code of an error.
M.READING = 'EAGAIN'
--- Files that are kept; the oldest give way.
local MAX_KEPT = 8
--- Nobody waits longer for a disk than so many ms.
local PATIENCE = 1000

---@class mcp-tools.ReadAhead
---@field path string
---@field stamp string? of the file, when it was read
---@field bytes string?
---@field fault string?
---@field code string?
---@field told (fun())[]? it is being read, and these want to hear when it was

---@type mcp-tools.ReadAhead[] oldest first
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

---@param entry mcp-tools.ReadAhead
local function start(entry)
  reading = reading + 1
  read.read(entry.path, M.MAX_BYTES, function(bytes, err)
    entry.bytes, entry.fault = bytes, err and err.message
    entry.code = err and err.code == 'not_found' and 'ENOENT' or nil
    local told = entry.told or {}
    entry.told, reading = nil, reading - 1
    call_all(told)
    if reading == 0 then
      local list = waiting
      waiting = {}
      call_all(list)
    end
  end)
end

--- The bytes of a file, if they are known already; else they are being read from now on.
---@param path string resolved
---@param again? fun() called once they are known, or why they are not; on the main loop
---@return string? bytes
---@return string? fault
---@return string? code 'ENOENT', or `READING`
function M.get(path, again)
  local stamp, found = stamp_of(path), nil
  for i, entry in ipairs(kept) do
    if entry.path == path and entry.stamp == stamp then
      found = entry
    elseif entry.path == path and not entry.told then
      table.remove(kept, i)
      break
    end
  end
  if not found then
    found = { path = path, stamp = stamp, told = {} }
    table.insert(kept, found)
    if #kept > MAX_KEPT then
      table.remove(kept, 1)
    end
    start(found)
  end
  if found.told then
    table.insert(found.told, again)
    return nil, 'the file is being read', M.READING
  end
  return found.bytes, found.fault, found.code
end

--- Is a file being read?
---@return boolean
function M.is_reading()
  return reading > 0
end

--- Waits until all that is being read was read, or for a second.
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
  expiry = timer.after(PATIENCE, finish)
  table.insert(waiting, finish)
end

return M
