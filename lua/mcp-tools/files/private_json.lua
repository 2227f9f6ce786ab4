--- Private JSON files that only this user can read and change, such as tokens and decisions.
---
--- All operations are synchronous: the files are small and bounded.

local read_sync = require('mcp-tools.util.read_sync')

local uv = vim.uv

local M = {}

local FILE_MODE = tonumber('600', 8)
local DIR_MODE = tonumber('700', 8)
local OTHERS_WRITE = tonumber('022', 8)
local OTHERS_READ = tonumber('044', 8)
local PERMISSION_BITS = tonumber('777', 8)
-- Default maximum file size in bytes.
local MAX_BYTES = 64 * 1024

---@param path string
---@param kind 'file'|'directory'
---@param stat uv.fs_stat.result
---@return string? fault includes how to fix it
local function fault_of(path, kind, stat)
  if stat.type ~= kind then
    return ('%s is a %s, not a %s; move it away'):format(path, stat.type, kind)
  end
  local uid = uv.getuid()
  if uid ~= stat.uid then
    return ('%s belongs to another user (uid %d); move it away'):format(path, stat.uid)
  end
  if bit.band(stat.mode, OTHERS_WRITE) ~= 0 then
    local fix = kind == 'file' and 'rm' or 'chmod 700'
    return ('%s is writable by other users; run `%s %s`'):format(path, fix, vim.fn.shellescape(path))
  end
end

--- Returns a problem with the owner or permissions of a file or directory, nil if it is private or missing.
---@param path string
---@param kind 'file'|'directory'
---@return string? fault includes how to fix it
function M.fault(path, kind)
  local stat = uv.fs_lstat(path)
  return stat and fault_of(path, kind, stat) or nil
end

--- Creates a private directory and its parents.
---@param path string
---@return boolean ok, string? err
function M.ensure_dir(path)
  local _, err = pcall(vim.fn.mkdir, path, 'p', DIR_MODE) -- does nothing if it exists
  local stat = uv.fs_lstat(path)
  if not stat then
    return false, ('cannot create the directory %s: %s'):format(path, err)
  end
  local fault = fault_of(path, 'directory', stat)
  if fault then
    return false, fault
  elseif bit.band(stat.mode, PERMISSION_BITS) ~= DIR_MODE then
    uv.fs_chmod(path, DIR_MODE)
  end
  return true
end

---@class mcp-tools.PrivateFile
---@field value? table nil: no such file, or not a JSON object
---@field present? true the file exists
---@field exposed? boolean other users could read it

--- Reads a JSON object.
---@param path string
---@param max_bytes? integer a larger file is treated as invalid (default: 64 KiB)
---@return mcp-tools.PrivateFile? found, string? err nil and an error if the file is not trustworthy or unreadable
function M.read(path, max_bytes)
  max_bytes = max_bytes or MAX_BYTES
  local fault = M.fault(path, 'file')
  if fault then
    return nil, fault
  end
  local stat
  local data, err, code = read_sync(path, max_bytes, function(opened)
    stat, fault = opened, fault_of(path, 'file', opened)
    return fault
  end)
  if code == 'ENOENT' then
    return {}
  elseif not data then
    return nil, fault or ('cannot read %s: %s'):format(path, err)
  end
  -- A file truncated by a full disk is invalid JSON: it is treated as missing and rewritten.
  local ok, value = pcall(vim.json.decode, stat.size <= max_bytes and data or '')
  local exposed = bit.band(stat.mode, OTHERS_READ) ~= 0
  return { value = ok and type(value) == 'table' and value or nil, present = true, exposed = exposed or nil }
end

local serial = 0

---@param value table
---@return string
local function text_of(value)
  return vim.json.encode(value) .. '\n'
end

---@param path string
---@param text string
---@return string? tmp, string? err
local function write_tmp(path, text)
  serial = serial + 1
  local tmp = ('%s.%d-%d.tmp'):format(path, uv.os_getpid(), serial)
  uv.fs_unlink(tmp) -- from an earlier process with our id
  local fd, err = uv.fs_open(tmp, 'wx', FILE_MODE)
  if not fd then
    return nil, ('cannot write %s: %s'):format(tmp, err)
  end
  local written, write_err = uv.fs_write(fd, text, 0)
  local closed, close_err = uv.fs_close(fd)
  if written ~= #text or not closed then
    uv.fs_unlink(tmp)
    return nil, ('cannot write %s: %s'):format(tmp, write_err or close_err or 'the disk is full')
  end
  return tmp
end

--- Replaces a file atomically.
---@param path string
---@param text string
---@return boolean ok, string? err
function M.write_text(path, text)
  local tmp, err = write_tmp(path, text)
  if not tmp then
    return false, err
  end
  local ok, rename_err = uv.fs_rename(tmp, path)
  if not ok then
    uv.fs_unlink(tmp)
    return false, ('cannot write %s: %s'):format(path, rename_err)
  end
  return true
end

--- Replaces a file with a JSON object.
---@param path string
---@param value table
---@param max_bytes? integer maximum size; a larger text is not written
---@return boolean ok, string? err
function M.write(path, value, max_bytes)
  local text = text_of(value)
  if #text > (max_bytes or math.huge) then
    return false, ('%s is full: the limit is %d KiB, the text has %d'):format(path, max_bytes / 1024, #text / 1024)
  end
  return M.write_text(path, text)
end

--- Creates a file unless it exists.
---@param path string
---@param value table
---@return boolean? created false: another process created it
---@return string? err
function M.create(path, value)
  local tmp, err = write_tmp(path, text_of(value))
  if not tmp then
    return nil, err
  end
  local ok, link_err, code = uv.fs_link(tmp, path)
  uv.fs_unlink(tmp)
  if ok then
    return true
  elseif code == 'EEXIST' then
    return false
  elseif code == 'EPERM' or code == 'ENOTSUP' or code == 'EOPNOTSUPP' or code == 'ENOSYS' then
    return M.write(path, value) -- a file system without hard links
  end
  return nil, ('cannot write %s: %s'):format(path, link_err)
end

return M
