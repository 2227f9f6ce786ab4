--- Files read without holding up the editor.
---
--- Receives: a path and a limit.
--- Sends: the bytes, or an error value, to a callback on the main loop.
--- Does not know about: buffers, tools.

local errors = require('mcp-tools.errors')

local uv = vim.uv

local M = {}

--- Not waiting: opening a pipe that nobody writes to would hold a thread of the pool for good.
local READ = bit.bor(uv.constants.O_RDONLY, uv.constants.O_NONBLOCK or 0)

---@param path string
---@param problem string|nil libuv's "CODE: text"
local function fault(path, problem)
  local missing = problem and problem:match('^ENOENT') ~= nil
  local text = missing and 'there is no file ' .. path or ('%s cannot be read: %s'):format(path, problem)
  return errors.new(missing and 'not_found' or 'tool_error', text)
end

--- Reads a regular file.
---@param path string
---@param limit integer bytes; a larger file is `too_large`
---@param cb fun(bytes: string?, err: mcp-tools.Error?)
function M.read(path, limit, cb)
  cb = vim.schedule_wrap(cb)
  uv.fs_open(path, READ, 0, function(problem, fd)
    if not fd then
      return cb(nil, fault(path, problem))
    end
    local function finish(bytes, err)
      uv.fs_close(fd, function()
        cb(bytes, err)
      end)
    end
    uv.fs_fstat(fd, function(stat_problem, stat)
      if not stat then
        return finish(nil, fault(path, stat_problem))
      elseif stat.type ~= 'file' then
        return finish(nil, errors.new('tool_error', ('%s is a %s, not a file'):format(path, stat.type)))
      elseif stat.size > limit then
        local text = ('%s has %d bytes, the limit is %d'):format(path, stat.size, limit)
        return finish(nil, errors.new('too_large', text))
      end
      uv.fs_read(fd, stat.size, 0, function(read_problem, bytes)
        finish(bytes, not bytes and fault(path, read_problem) or nil)
      end)
    end)
  end)
end

return M
