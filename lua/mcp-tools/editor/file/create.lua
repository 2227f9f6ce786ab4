--- A new file, with the folders that it needs. Nothing that is there is touched.
---
--- Receives: a resolved path, its text, the project's root.
--- Sends: nothing, or an error value; then nothing is left of it.
--- Does not know about: who may write there.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.files.read')

local uv = vim.uv

local M = {}

--- rwxr-xr-x and rw-r--r--, less what the umask takes.
local FOLDER, FILE = 511, 438

--- Returns a callback of libuv that resumes the coroutine of `M.make`.
---@return fun(problem: string?, result: any)
local function resume()
  local co = coroutine.running()
  return vim.schedule_wrap(function(problem, result)
    local ok, thrown = coroutine.resume(co, result, problem)
    if not ok then
      log.error('a file could not be made: %s', debug.traceback(co, tostring(thrown)))
    end
  end)
end

--- Waits for a function of libuv, in the coroutine of `M.make`.
---@param name string
---@param ... any
---@return any result
---@return string? problem
local function async(name, ...)
  local args = vim.F.pack_len(...)
  args.n = args.n + 1
  args[args.n] = resume()
  uv[name](vim.F.unpack_len(args))
  return coroutine.yield()
end

--- Where an open file really is: a directory of its path may have become a link.
---@param fd integer
---@param path string
---@return string?
local function place_of(fd, path)
  local done = resume()
  read.where(fd, path, function(real)
    done(nil, real)
  end)
  return (coroutine.yield())
end

---@param path string
---@param problem string?
local function fault(path, problem)
  if (problem or ''):match('^EEXIST') then
    return errors.new('stale', ('%s is there now; look at it before it is changed'):format(path))
  end
  return errors.new('tool_error', ('%s cannot be made: %s'):format(path, problem or 'unknown'))
end

--- Makes the folders of a path that are not there, from the top.
---@param folder string
---@param root string
---@param made string[] those that were, for the way back
---@return mcp-tools.Error?
local function make_folders(folder, root, made)
  local missing = {}
  while not async('fs_stat', folder) do
    table.insert(missing, 1, folder)
    folder = vim.fs.dirname(folder)
  end
  if #missing > 0 and not paths.inside(missing[1], root) then
    local text = 'there is no folder %s, and folders are made inside of the project only'
    return errors.new('not_found', text:format(missing[1]))
  end
  for _, each in ipairs(missing) do
    local ok, problem = async('fs_mkdir', each, FOLDER)
    if not ok then
      return fault(each, problem)
    end
    table.insert(made, each)
  end
end

---@param path string
---@param text string
---@return mcp-tools.Error?
local function write(path, text)
  local fd, problem = async('fs_open', path, 'wx', FILE)
  if not fd then
    return fault(path, problem)
  end
  local at, elsewhere = 0, 'it is not the place any more that was decided on'
  problem = place_of(fd, path) ~= path and elsewhere or nil
  while at < #text and not problem do
    local count
    count, problem = async('fs_write', fd, text:sub(at + 1), at)
    at = at + (count or 0)
  end
  local real = place_of(fd, path)
  problem = problem or real ~= path and elsewhere or nil
  if problem and real then
    async('fs_unlink', real) -- at `path` there may be a file of others
  end
  async('fs_close', fd)
  return problem and fault(path, problem) or nil
end

--- Makes the file. Once begun it is not given up half way, whoever waits for it. The callback runs on the main loop.
---@param path string resolved
---@param text string
---@param root string
---@param cb fun(err: mcp-tools.Error?)
function M.make(path, text, root, cb)
  local co = coroutine.create(function()
    local made = {}
    local err = make_folders(vim.fs.dirname(path), root, made)
    err = err or write(path, text)
    for i = #made, 1, -1 do
      if err then
        async('fs_rmdir', made[i])
      end
    end
    cb(err)
  end)
  assert(coroutine.resume(co))
end

return M
