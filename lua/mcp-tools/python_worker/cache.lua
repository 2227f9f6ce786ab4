--- Stores the definitions of Python tools on disk, so that listing them starts no process.

local log = require('mcp-tools.log')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')

local M = {}

--- Version of the file's format.
local FORMAT = 1
local MAX_BYTES = 8 * 1024 * 1024

---@class mcp-tools.python_worker.Known
---@field path string? the module's file
---@field stamp string? its modification time and size
---@field at integer unix seconds
---@field tools table[] definitions
---@field faults string[] errors of the module or of some of its tools
---@field ms integer? time it took to read the module

--- Returns modification time and size of a file.
---@param path string?
---@return string?
function M.stamp(path)
  local stat = path and vim.uv.fs_stat(path)
  return stat and stat.type == 'file' and ('%d.%09d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.size) or nil
end

--- Decides whether a cached module is current, as far as its times show.
---@param known mcp-tools.python_worker.Known?
---@param from_disk boolean whether an earlier Neovim process has read it; then a failure need not be retried
---@param ttl number seconds for which it is valid
---@return boolean fits its tools may be registered
---@return boolean fresh it need not be read again
function M.judge(known, from_disk, ttl)
  if not known then
    return false, false
  end
  local recent = os.time() - known.at < ttl
  if not known.path then -- the module was not found
    return true, recent and from_disk
  end
  local fits = known.stamp == M.stamp(known.path)
  return fits, fits and recent and (#known.faults == 0 or from_disk)
end

local function cache_file()
  return vim.fs.joinpath(project.state_dir(), 'python-tools.json')
end

--- Reads the cache. It is valid for the same Python and version of the plugin only.
---@param by string identifies both
---@return table<string, mcp-tools.python_worker.Known>
function M.read(by)
  local read, err = private_files.read(cache_file(), MAX_BYTES)
  if not read then
    log.warn('the cache of Python tools is not used: %s', err)
  end
  local value = read and read.value
  if not value or value.format ~= FORMAT or value.by ~= by or type(value.modules) ~= 'table' then
    return {}
  end
  return value.modules
end

--- Writes the cache. After a failure only the next start is slower.
---@param by string
---@param modules table<string, mcp-tools.python_worker.Known>
function M.write(by, modules)
  local ok, err = private_files.ensure_dir(project.state_dir())
  if ok then
    local written = next(modules) and modules or vim.empty_dict()
    ok, err = private_files.write(cache_file(), { format = FORMAT, by = by, modules = written })
  end
  if not ok then
    log.warn('the cache of Python tools cannot be written: %s', err)
  end
end

return M
