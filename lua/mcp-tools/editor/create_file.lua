--- A new file, with the folders that it needs. Nothing that is there is touched.
---
--- Receives: a resolved path, its text, the project's root.
--- Sends: nothing, or an error value; then nothing is left of it.
--- Does not know about: who may write there.

local errors = require('mcp-tools.errors')
local paths = require('mcp-tools.files.paths')

local uv = vim.uv

local M = {}

--- rwxr-xr-x and rw-r--r--, less what the umask takes.
local FOLDER, FILE = 511, 438

---@param ctx mcp-tools.Ctx
---@param name string a function of libuv
---@param ... any
---@return any result
---@return string? problem
local function async(ctx, name, ...)
  local args = vim.F.pack_len(...)
  return ctx:await(function(done)
    args.n = args.n + 1
    args[args.n] = vim.schedule_wrap(function(problem, result)
      done(result, problem)
    end)
    uv[name](vim.F.unpack_len(args))
  end)
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
---@param ctx mcp-tools.Ctx
---@param folder string
---@param root string
---@param made string[] those that were, for the way back
---@return mcp-tools.Error?
local function make_folders(ctx, folder, root, made)
  local missing = {}
  while not async(ctx, 'fs_stat', folder) do
    table.insert(missing, 1, folder)
    folder = vim.fs.dirname(folder)
  end
  if #missing > 0 and not paths.inside(missing[1], root) then
    local text = 'there is no folder %s, and folders are made inside of the project only'
    return errors.new('not_found', text:format(missing[1]))
  end
  for _, each in ipairs(missing) do
    local ok, problem = async(ctx, 'fs_mkdir', each, FOLDER)
    if not ok then
      return fault(each, problem)
    end
    table.insert(made, each)
  end
end

---@param ctx mcp-tools.Ctx
---@param path string
---@param text string
---@return mcp-tools.Error?
local function write(ctx, path, text)
  local fd, problem = async(ctx, 'fs_open', path, 'wx', FILE)
  if not fd then
    return fault(path, problem)
  end
  local at = 0
  while at < #text and not problem do
    local count
    count, problem = async(ctx, 'fs_write', fd, text:sub(at + 1), at)
    at = at + (count or 0)
  end
  async(ctx, 'fs_close', fd)
  -- A folder may have become a link meanwhile.
  if not problem and async(ctx, 'fs_realpath', path) ~= path then
    problem = 'it is not the place any more that was decided on'
  end
  if problem then
    async(ctx, 'fs_unlink', path)
    return fault(path, problem)
  end
end

--- Makes the file. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@param text string
---@param root string
---@return mcp-tools.Error? err
function M.make(ctx, path, text, root)
  local made = {}
  local err = make_folders(ctx, vim.fs.dirname(path), root, made)
  err = err or write(ctx, path, text)
  for i = #made, 1, -1 do
    if err then
      async(ctx, 'fs_rmdir', made[i])
    end
  end
  return err
end

return M
