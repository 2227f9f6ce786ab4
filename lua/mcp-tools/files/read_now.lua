--- A small file read at once: ours, or one that is about to be run. Others are read by files/read.lua.
---
--- Receives: a path. Sends: the bytes of a regular file, or why there are none.
--- Does not know about: what is in it.

local uv = vim.uv

--- Not waiting: opening a pipe that nobody writes to would hold the editor for good.
local READ = bit.bor(uv.constants.O_RDONLY, uv.constants.O_NONBLOCK or 0)

---@param path string
---@return string? bytes
---@return string? fault
return function(path)
  local fd, fault = uv.fs_open(path, READ, 0)
  if not fd then
    return nil, fault
  end
  local stat, bytes = uv.fs_fstat(fd), nil
  if stat and stat.type == 'file' then
    bytes, fault = uv.fs_read(fd, stat.size, 0)
  else
    fault = path .. ': no regular file'
  end
  uv.fs_close(fd)
  return bytes, fault
end
