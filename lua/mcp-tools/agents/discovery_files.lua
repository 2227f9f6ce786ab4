--- Discovery files: by them agents find this editor. What is on the disk follows what is wanted.
---
--- The folders belong to agents, who make them as they like: nothing is written below a folder of another user, or one
--- that anybody may change. Another editor may have put its own file in the place of ours, on a port that was ours
--- before: that one stays.

local log = require('mcp-tools.log')
local private_files = require('mcp-tools.files.private_json')
local read_now = require('mcp-tools.files.read_sync')

local uv = vim.uv

local M = {}

local ALL_WRITE, STICKY = tonumber('002', 8), tonumber('1000', 8)
--- Bytes of a file of ours; a longer one was not written by us.
local MAX_BYTES = 64 * 1024
--- Files in a folder that are looked at for those of dead editors.
local MAX_SWEPT = 200

---@type table<string, string> path → text of files that this editor has written
local written = {}
---@type table<string, string> path → why it is not there
local faults = {}
---@type string[] paths of sockets, which go with the files
local sockets = {}

--- May others put a file of theirs in the place of ours? Not when each folder on the way is ours or the system's, and
--- what all may write to keeps names to their owners.
---@param folder string real path
---@return string? fault
local function way_fault(folder)
  local uid, place = uv.getuid and uv.getuid(), folder
  while uid do
    local stat, err = uv.fs_lstat(place)
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

--- Makes the folder of a file, with those above it.
---@param folder string
---@return string? real path
---@return string? fault
local function make_folder(folder)
  local there = folder
  while not uv.fs_stat(there) and vim.fs.dirname(there) ~= there do
    there = vim.fs.dirname(there)
  end
  local real, err = uv.fs_realpath(there)
  local fault = not real and err or way_fault(real)
  if fault then
    return nil, fault
  end
  real = real .. folder:sub(#there + 1)
  local ok, why = private_files.ensure_dir(real)
  return ok and real or nil, why
end

---@param text string?
---@return table? body
---@return any label names the kind of editor
local function body_of(text)
  local ok, body = pcall(vim.json.decode, text or '')
  if ok and type(body) == 'table' then
    return body, body.ideName or type(body.ideInfo) == 'table' and body.ideInfo.name or nil
  end
end

--- Removes what editors of the same name have left that were killed.
---@param path string of the file of this editor
---@param text string
local function sweep(path, text)
  local folder, count, _, label = vim.fs.dirname(path), 0, body_of(text)
  for name in label and vim.fs.dir(folder) or function() end do
    local other = vim.fs.joinpath(folder, name)
    count = count + 1
    if count > MAX_SWEPT then
      return
    elseif not written[other] and name:match('%.%w+$') == path:match('%.%w+$') then
      local body, other_label = body_of((read_now(other, MAX_BYTES)))
      local pid = body and (body.pid or body.ppid or tonumber(name:match('%-(%d+)%-%d+%.json$')))
      if other_label == label and type(pid) == 'number' and select(3, uv.kill(pid, 0)) == 'ESRCH' then
        uv.fs_unlink(other)
        log.info('removed what an editor that is gone had left: %s', other)
      end
    end
  end
end

---@param path string
local function remove(path)
  if read_now(path, MAX_BYTES) == written[path] then
    uv.fs_unlink(path)
  end
  written[path] = nil
end

---@param path string
---@param text string
local function write(path, text)
  local folder, fault = make_folder(vim.fs.dirname(path))
  local ok = folder ~= nil
  if folder then
    ok, fault = private_files.write_text(vim.fs.joinpath(folder, vim.fs.basename(path)), text)
  end
  written[path], faults[path] = ok and text or nil, not ok and fault or nil
  if ok then
    sweep(path, text)
  else
    log.warn('agents cannot find this editor by %s: %s', path, fault)
  end
end

--- From now on these files are there, and no others of ours.
---@param files table<string, string> path → text
---@param wanted_sockets string[] of the endpoints
function M.want(files, wanted_sockets)
  faults, sockets = {}, wanted_sockets
  for path in pairs(vim.deepcopy(written)) do
    if not files[path] then
      remove(path)
    end
  end
  for path, text in vim.spairs(files) do
    if written[path] ~= text then
      write(path, text)
    end
  end
end

--- Removes all: the editor ends.
function M.remove_all()
  for _, path in ipairs(sockets) do
    uv.fs_unlink(path)
  end
  M.want({}, {})
end

--- Files that could not be written, and why.
---@return table<string, string>
function M.faults()
  return faults
end

--- Files that are there.
---@return string[]
function M.paths()
  local paths = vim.tbl_keys(written)
  table.sort(paths)
  return paths
end

return M
