--- Private files: JSON of ours that only this user can read and change, such as tokens and what was decided for good.
---
--- All is done at once: most files have a few hundred bytes, and none more than the caller's bound.

local read_now = require('mcp-tools.files.read_sync')

local uv = vim.uv

local M = {}

local FILE_MODE = tonumber('600', 8)
local DIR_MODE = tonumber('700', 8)
local OTHERS_WRITE = tonumber('022', 8)
local OTHERS_READ = tonumber('044', 8)
local PERMISSION_BITS = tonumber('777', 8)
-- Ours are far smaller; a larger one was not written by us.
local MAX_BYTES = 64 * 1024

---@param path string
---@param kind 'file'|'directory'
---@param stat uv.fs_stat.result
---@return string? fault with the command that mends it
local function fault_of(path, kind, stat)
  if stat.type ~= kind then
    return ('%s is a %s and not a %s: move it away'):format(path, stat.type, kind)
  end
  local uid = uv.getuid and uv.getuid()
  if uid and uid ~= stat.uid then
    return ('%s belongs to another user (uid %d): move it away'):format(path, stat.uid)
  end
  if uid and bit.band(stat.mode, OTHERS_WRITE) ~= 0 then
    local fix = kind == 'file' and 'rm' or 'chmod 700'
    return ('%s can be written by other users: run `%s %s`'):format(path, fix, vim.fn.shellescape(path))
  end
end

--- What is wrong with the owner or the rights of a file or folder; nil when nothing is, or when it is not there.
---@param path string
---@param kind 'file'|'directory'
---@return string? fault with the command that mends it
function M.fault(path, kind)
  local stat = uv.fs_lstat(path)
  return stat and fault_of(path, kind, stat) or nil
end

--- Makes a folder (and those above it) that is ours alone.
---@param path string
---@return boolean ok, string? err
function M.ensure_dir(path)
  if not uv.fs_lstat(path) then
    local ok, err = pcall(vim.fn.mkdir, path, 'p', DIR_MODE)
    if not ok and not uv.fs_lstat(path) then
      return false, ('cannot make the folder %s: %s'):format(path, err)
    end
  end
  local fault = M.fault(path, 'directory')
  if fault then
    return false, fault
  end
  local stat = uv.fs_lstat(path)
  if stat and uv.getuid and bit.band(stat.mode, PERMISSION_BITS) ~= DIR_MODE then
    uv.fs_chmod(path, DIR_MODE)
  end
  return true
end

---@class mcp-tools.PrivateFile
---@field value? table nil: there is no such file, or it holds no JSON object
---@field present? true there is such a file
---@field exposed? boolean other users could read it

--- Reads a JSON object.
---@param path string
---@param max_bytes? integer what is longer counts as no JSON (default 64 KiB)
---@return mcp-tools.PrivateFile? found, string? err nil + err when the file must not be trusted or cannot be read
function M.read(path, max_bytes)
  max_bytes = max_bytes or MAX_BYTES
  local fault = M.fault(path, 'file')
  if fault then
    return nil, fault
  end
  local stat
  local data, err, code = read_now(path, max_bytes, function(opened)
    stat, fault = opened, fault_of(path, 'file', opened)
    return fault
  end)
  if code == 'ENOENT' then
    return {}
  elseif not data then
    return nil, fault or ('cannot read %s: %s'):format(path, err)
  end
  -- A file cut short by a full disk is no JSON: it counts as absent and is written anew.
  local ok, value = pcall(vim.json.decode, stat.size <= max_bytes and data or '')
  local exposed = uv.getuid and bit.band(stat.mode, OTHERS_READ) ~= 0
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
  uv.fs_unlink(tmp) -- of an earlier process with our id
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

--- Replaces the file at once: a reader sees the old or the new one, never half of it.
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

--- Replaces the file by a JSON object.
---@param path string
---@param value table
---@param max_bytes? integer what a reader will take; a longer one is not written
---@return boolean ok, string? err
function M.write(path, value, max_bytes)
  local text = text_of(value)
  if #text > (max_bytes or math.huge) then
    return false, ('%s is full: it may have %d KiB, and this would be %d'):format(path, max_bytes / 1024, #text / 1024)
  end
  return M.write_text(path, text)
end

--- Writes the file unless another process was quicker.
---@param path string
---@param value table
---@return boolean? created false: the file of another process stands, string? err
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
