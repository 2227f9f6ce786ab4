--- Cache of what is known of Python modules: on disk, so that listing tools starts no process.

local log = require('mcp-tools.log')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')

local M = {}

--- Raised when what is written means something else.
local FORMAT = 1
local MAX_BYTES = 8 * 1024 * 1024

---@class mcp-tools.python_worker.Known
---@field path string? of the module
---@field stamp string? time and size of that file
---@field at integer unix seconds
---@field tools table[] definitions
---@field faults string[] what is wrong with the module, or with some of its tools
---@field ms integer? that reading it took

--- Time and size of a file.
---@param path string?
---@return string?
function M.stamp(path)
  local stat = path and vim.uv.fs_stat(path)
  return stat and stat.type == 'file' and ('%d.%09d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.size) or nil
end

--- Is what is known the truth, as far as times tell?
---@param known mcp-tools.python_worker.Known?
---@param from_disk boolean it was read in an earlier life of the editor; then a failure need not be tried again
---@param ttl number seconds that it counts as known
---@return boolean fits it may be offered
---@return boolean fresh it need not be read again
function M.judge(known, from_disk, ttl)
  if not known then
    return false, false
  end
  local recent = os.time() - known.at < ttl
  if not known.path then -- the module could not be found
    return true, recent and from_disk
  end
  local fits = known.stamp == M.stamp(known.path)
  return fits, fits and recent and (#known.faults == 0 or from_disk)
end

local function place()
  return vim.fs.joinpath(project.state_dir(), 'python-tools.json')
end

--- What was written last, if the same Python and the same version of the plugin have written it.
---@param by string who reads modules
---@return table<string, mcp-tools.python_worker.Known>
function M.read(by)
  local read, err = private_files.read(place(), MAX_BYTES)
  if not read then
    log.warn('what is known of Python tools is not used: %s', err)
  end
  local value = read and read.value
  if not value or value.format ~= FORMAT or value.by ~= by or type(value.modules) ~= 'table' then
    return {}
  end
  return value.modules
end

--- Writes what is known; failing costs time at the next start, nothing else.
---@param by string
---@param modules table<string, mcp-tools.python_worker.Known>
function M.write(by, modules)
  local ok, err = private_files.ensure_dir(project.state_dir())
  if ok then
    local written = next(modules) and modules or vim.empty_dict()
    ok, err = private_files.write(place(), { format = FORMAT, by = by, modules = written })
  end
  if not ok then
    log.warn('what is known of Python tools cannot be kept: %s', err)
  end
end

return M
