--- Reads a small file synchronously: a file of this plugin, or one that is about to be run. Other files are read by
--- privacy/read.lua.

local uv = vim.uv

--- Non-blocking: opening a pipe without a writer would block forever.
local READ = bit.bor(uv.constants.O_RDONLY, uv.constants.O_NONBLOCK or 0)

---@param path string
---@param max_bytes? integer only the beginning of a larger file is read
---@param fault_of? fun(stat: uv.fs_stat.result): string? checks the opened file, which may differ from an earlier check
---  of the path
---@return string? bytes
---@return string? fault
---@return string? code 'ENOENT', … if the file cannot be opened
return function(path, max_bytes, fault_of)
  local fd, err, code = uv.fs_open(path, READ, 0)
  if not fd then
    return nil, err, code
  end
  local stat, bytes = uv.fs_fstat(fd), nil
  local fault = stat and fault_of and fault_of(stat)
  if not fault and stat and stat.type == 'file' then
    bytes, fault = uv.fs_read(fd, math.min(stat.size, max_bytes or math.huge), 0)
  end
  uv.fs_close(fd)
  return bytes, not bytes and (fault or path .. ': not a regular file') or nil
end
