--- Discovery files, by which agents find this editor.
---
--- The directories belong to the agents: nothing is written below a directory that another user owns or may change.
--- If another editor got our former port and replaced our file, that file stays.

local log = require('mcp-tools.log')
local private_files = require('mcp-tools.files.private_json')
local read_sync = require('mcp-tools.util.read_sync')

local uv = vim.uv

local M = {}

local ALL_WRITE, STICKY, DIR_MODE = tonumber('002', 8), tonumber('1000', 8), tonumber('700', 8)
--- Maximum size of our files in bytes; a longer file was not written by us.
local MAX_BYTES = 64 * 1024

---@type table<string, string> path → text of files that this editor has written
local written = {}
---@type table<string, string> path → why the file could not be written
local faults = {}
---@type string[] paths of sockets, removed together with the files
local sockets = {}

--- Checks that no other user can replace our file: each parent directory belongs to us or to root, and a
--- world-writable one has the sticky bit.
---@param directory string real path
---@return string? fault
local function unsafe_parent(directory)
  local uid, at = uv.getuid(), directory
  while true do
    local stat, err = uv.fs_lstat(at)
    if not stat then
      return err
    elseif stat.uid ~= uid and stat.uid ~= 0 then
      return ('%s belongs to another user (uid %d)'):format(at, stat.uid)
    elseif bit.band(stat.mode, ALL_WRITE) ~= 0 and bit.band(stat.mode, STICKY) == 0 then
      return ('%s can be written by other users: run `chmod o-w %s`'):format(at, vim.fn.shellescape(at))
    end
    local parent = vim.fs.dirname(at)
    if parent == at then
      return nil
    end
    at = parent
  end
end

--- Creates the directory of a file, with its parents. An existing one becomes private, because an agent with the umask
--- 002 creates it writable by the group.
---@param directory string
---@return string? path real
---@return string? fault
local function make_directory(directory)
  local existing = directory
  while not uv.fs_stat(existing) and vim.fs.dirname(existing) ~= existing do
    existing = vim.fs.dirname(existing)
  end
  local real, err = uv.fs_realpath(existing)
  local fault = not real and err or unsafe_parent(real)
  if fault then
    return nil, fault
  end
  real = real .. directory:sub(#existing + 1)
  local stat = uv.fs_lstat(real)
  if stat and stat.type == 'directory' and stat.uid == uv.getuid() then
    uv.fs_chmod(real, DIR_MODE)
  end
  local ok, why = private_files.ensure_dir(real)
  return ok and real or nil, why
end

--- Returns the name of the editor that a discovery file names.
---@param text string? of the file
---@return any
local function editor_of(text)
  local ok, body = pcall(vim.json.decode, text or '')
  local info = ok and type(body) == 'table' and body.ideInfo
  return type(info) == 'table' and info.name or nil
end

--- Removes files that killed editors have left, if the names of the files contain the process id. Other files are
--- replaced by the next editor of the project; they may belong to another host that shares the home directory.
---@param path string the file of this editor, in a directory for temporary files
---@param text string
local function sweep(path, text)
  local directory, prefix = vim.fs.dirname(path), vim.fs.basename(path):match('^(.*%-)%d+%-%d+%.json$')
  for name in prefix and vim.fs.dir(directory) or function() end do
    local pid = vim.startswith(name, prefix) and tonumber(name:sub(#prefix + 1):match('^(%d+)%-%d+%.json$'))
    local other = vim.fs.joinpath(directory, name)
    if pid and select(3, uv.kill(pid, 0)) == 'ESRCH' and editor_of(read_sync(other, MAX_BYTES)) == editor_of(text) then
      uv.fs_unlink(other)
      log.info('removed a file of an editor that has ended: %s', other)
    end
  end
end

---@param path string
---@param text string
local function write(path, text)
  local directory, fault = make_directory(vim.fs.dirname(path))
  local ok = directory ~= nil
  if directory then
    ok, fault = private_files.write_text(vim.fs.joinpath(directory, vim.fs.basename(path)), text)
  end
  written[path], faults[path] = ok and text or nil, not ok and fault or nil
  if ok then
    sweep(path, text)
  else
    log.warn('agents cannot find this editor by %s: %s', path, fault)
  end
end

--- Writes these files and removes all others that this editor has written.
---@param files table<string, string> path → text
---@param wanted_sockets string[] of the endpoints
function M.set(files, wanted_sockets)
  faults, sockets = {}, wanted_sockets
  for path in pairs(vim.deepcopy(written)) do
    if not files[path] then
      if read_sync(path, MAX_BYTES) == written[path] then
        uv.fs_unlink(path)
      end
      written[path] = nil
    end
  end
  for path, text in vim.spairs(files) do
    if written[path] ~= text then
      write(path, text)
    end
  end
end

--- Removes all files and sockets; called when the editor exits.
function M.remove_all()
  for _, path in ipairs(sockets) do
    uv.fs_unlink(path)
  end
  M.set({}, {})
end

--- Returns the files that could not be written, with the errors.
---@return table<string, string>
function M.faults()
  return faults
end

--- Returns the paths of the written files.
---@return string[]
function M.paths()
  local paths = vim.tbl_keys(written)
  table.sort(paths)
  return paths
end

return M
