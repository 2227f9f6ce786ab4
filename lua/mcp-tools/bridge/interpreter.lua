--- Python interpreter of the bridge.
---
--- Downloads nothing.

local config = require('mcp-tools.config')
local project = require('mcp-tools.instances.project')
local read_now = require('mcp-tools.files.read_sync')
local strings = require('mcp-tools.util.strings')
local trim = require('mcp-tools.util.trim')

local uv = vim.uv

local M = {}

local MINIMUM = { 3, 11 }
local MINIMUM_TEXT = '3.11'
-- The probe of an interpreter that does not answer (a broken shim, a network drive) must end.
local PROBE_TIMEOUT = 5000
local PROBE = 'import sys; print("%d.%d.%d" % sys.version_info[:3])'

---@class mcp-tools.bridge.PythonFault
---@field message string
---@field advice string the line to run or to write
---@field needs_install? boolean `:McpTools install` mends it
---@field under_way? boolean somebody is at it: wait

---@class mcp-tools.bridge.Runtime
---@field command string[]
---@field source 'command'|'python'|'environment' which option, or the private environment
---@field python? string the interpreter, when we chose it
---@field version? string

--- The private environment.
---@return string
function M.environment_dir()
  return vim.fs.joinpath(vim.fn.stdpath('data') --[[@as string]], 'mcp-tools', 'venv')
end

---@param dir string
---@return string
function M.interpreter(dir)
  local parts = vim.fn.has('win32') == 1 and { 'Scripts', 'python.exe' } or { 'bin', 'python' }
  return vim.fs.joinpath(dir, unpack(parts))
end

--- Version of the interpreter that an environment was made from, as its own notes say.
---@param dir string
---@return string?
function M.environment_version(dir)
  local text = read_now(vim.fs.joinpath(dir, 'pyvenv.cfg'))
  return text and text:match('version[_info]*%s*=%s*(%d[%d.]*)')
end

---@param version string
---@return boolean
local function is_old(version)
  return vim.version.lt(version:match('^%d+%.%d+') or '0', MINIMUM)
end

---@type mcp-tools.bridge.PythonFault
local INSTALL = { advice = 'Run :McpTools install', needs_install = true }

-- An installation that takes longer (seconds) hangs, or its note is from before a restart of the machine.
local LONGEST = 15 * 60

--- What scripts/install-env has noted of a run that builds the environment, or of one that failed.
---@param dir string
---@return mcp-tools.bridge.PythonFault?
local function installation(dir)
  local file = dir .. '.lock'
  local ok, note = pcall(vim.json.decode, read_now(file) or '{}')
  if not ok or type(note) ~= 'table' then
    return nil -- being written
  elseif note.failed then
    local text = 'the Python environment of the bridge could not be installed: %s'
    return vim.tbl_extend('error', { message = text:format(note.failed) }, INSTALL)
  elseif type(note.pid) == 'number' then
    local stat = uv.fs_stat(file)
    if stat and os.time() - stat.mtime.sec < LONGEST and uv.kill(note.pid, 0) == 0 then
      return {
        message = 'the Python environment of the bridge is being installed',
        advice = 'The bridge starts by itself when that is done',
        needs_install = true,
        under_way = true,
      }
    end
    return vim.tbl_extend('error', {
      message = 'the installation of the Python environment of the bridge was cut off',
    }, INSTALL)
  end
end

--- What keeps the private environment from being used; nil when it fits the lock of this version of the plugin.
---@return mcp-tools.bridge.PythonFault?
function M.environment_fault()
  local dir = M.environment_dir()
  local folder = project.plugin_dir()
  local lock = read_now(vim.fs.joinpath(folder, 'requirements.lock'))
    or read_now(vim.fs.joinpath(folder, 'conf', 'requirements.lock')) -- where LuaRocks puts single files
  if not lock then
    return {
      message = 'requirements.lock is missing from ' .. folder,
      advice = 'Install the plugin again with your plugin manager',
    }
  end
  local stamp = read_now(vim.fs.joinpath(dir, '.lock-hash'))
  local fits = stamp and trim(stamp) == vim.fn.sha256(lock)
  local run = not fits and installation(dir)
  if run then
    return run
  elseif not stamp then
    return vim.tbl_extend('error', { message = 'the Python environment of the bridge is not installed' }, INSTALL)
  elseif not fits then
    return vim.tbl_extend('error', {
      message = 'the Python environment of the bridge belongs to another version of the plugin',
    }, INSTALL)
  elseif not uv.fs_access(M.interpreter(dir), 'X') then
    -- A virtual environment points to the interpreter it was made from; a system upgrade may take that away.
    return vim.tbl_extend('error', {
      message = 'the Python that the environment of the bridge was made from is gone',
    }, INSTALL)
  end
end

--- The file of the option `python.packages`; a relative one lies in the folder of the person's configuration.
---@return string? path nil as well where the private environment is not the one that runs tools
function M.packages_file()
  local name = config.get('python.packages')
  if name == nil or config.get('bridge.python') ~= nil then
    return nil
  end
  if name:match('^~/') then
    return uv.os_homedir() .. name:sub(2)
  elseif name:match('^/') or name:match('^%a:[/\\]') then
    return name
  end
  return vim.fs.joinpath(vim.fn.stdpath('config') --[[@as string]], name)
end

--- What keeps the packages of a person from being there as their file says; the bridge does without them.
---@return mcp-tools.bridge.PythonFault?
function M.packages_fault()
  local name, python, file = config.get('python.packages'), config.get('bridge.python'), M.packages_file()
  if name ~= nil and python ~= nil then
    return {
      message = 'python.packages is not used, as bridge.python names the Python',
      advice = ('Install them there: %s -m pip install -r %s'):format(python, name),
    }
  elseif not file then
    return nil
  end
  local text = read_now(file)
  local stamp = read_now(vim.fs.joinpath(M.environment_dir(), '.packages-hash'))
  if not text then
    return {
      message = ('python.packages: %s cannot be read'):format(file),
      advice = 'Write that file, or leave the option out',
    }
  elseif not stamp then
    return vim.tbl_extend('error', { message = ('the packages of %s are not installed'):format(file) }, INSTALL)
  elseif trim(stamp) ~= vim.fn.sha256(text) then
    return vim.tbl_extend('error', {
      message = ('%s has changed since its packages were installed'):format(file),
    }, INSTALL)
  end
end

local probed = {} ---@type table<string, string> interpreter → version

--- Asks an interpreter for its version, without waiting for it.
---@param python string
---@param cb fun(version: string?, err: string?)
local function probe(python, cb)
  if probed[python] then
    return cb(probed[python])
  end
  local ok, err = pcall(vim.system, { python, '-I', '-c', PROBE }, {
    text = true,
    timeout = PROBE_TIMEOUT,
    cwd = project.plugin_dir(),
  }, function(done)
    local version = done.code == 0 and done.stdout:match('^%d+%.%d+%.%d+') or nil
    probed[python] = version
    vim.schedule(function()
      local why = done.signal ~= 0 and ('no answer within %d s'):format(PROBE_TIMEOUT / 1000)
        or strings.last_line(trim(done.stderr or ''))
      cb(version, why)
    end)
  end)
  if not ok then
    cb(nil, tostring(err))
  end
end

---@param python string
---@param cb fun(runtime: mcp-tools.bridge.Runtime?, fault: mcp-tools.bridge.PythonFault?)
local function chosen(python, cb)
  local path = vim.fn.exepath(vim.fn.expand(python))
  local advice = ('Set bridge.python to Python %s or newer, or leave it out and run :McpTools install'):format(
    MINIMUM_TEXT
  )
  if path == '' then
    return cb(nil, { message = ('bridge.python: %s is no program'):format(python), advice = advice })
  end
  probe(path, function(version, err)
    if not version then
      cb(nil, { message = ('bridge.python: %s does not run: %s'):format(path, err), advice = advice })
    elseif is_old(version) then
      local text = 'bridge.python: %s is Python %s, too old: the bridge needs %s or newer'
      cb(nil, { message = text:format(path, version, MINIMUM_TEXT), advice = advice })
    else
      cb({
        command = { path, project.python_package(), 'process.main' },
        source = 'python',
        python = path,
        version = version,
      })
    end
  end)
end

--- Finds the Python of the options or of the private environment. `cb` may be called before this returns.
---@param cb fun(runtime: mcp-tools.bridge.Runtime?, fault: mcp-tools.bridge.PythonFault?)
function M.resolve_python(cb)
  local python = config.get('bridge.python')
  if python ~= nil then
    return chosen(python, cb)
  end
  local fault = M.environment_fault()
  if fault then
    return cb(nil, fault)
  end
  local dir = M.environment_dir()
  local interpreter = M.interpreter(dir)
  cb({
    command = { interpreter, project.python_package(), 'process.main' },
    source = 'environment',
    python = interpreter,
    version = M.environment_version(dir),
  })
end

--- Finds the command of the bridge. `cb` may be called before this returns.
---@param cb fun(runtime: mcp-tools.bridge.Runtime?, fault: mcp-tools.bridge.PythonFault?)
function M.resolve(cb)
  local command = config.get('bridge.command')
  if command == nil then
    return M.resolve_python(cb)
  end
  command = type(command) == 'string' and { command } or command
  if #command == 0 or command[1] == '' then
    return cb(
      nil,
      { message = 'bridge.command is empty', advice = 'Name a program in bridge.command, or leave it out' }
    )
  end
  cb({ command = vim.list_slice(command), source = 'command' })
end

return M
