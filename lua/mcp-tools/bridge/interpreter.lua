--- Finds the Python interpreter of the bridge. Downloads nothing.

local config = require('mcp-tools.config')
local process = require('mcp-tools.editor.process')
local project = require('mcp-tools.instances.project')
local read_sync = require('mcp-tools.util.read_sync')
local strings = require('mcp-tools.util.strings')
local trim = require('mcp-tools.util.trim')

local uv = vim.uv

local M = {}

local MINIMUM = { 3, 11 }
local MINIMUM_TEXT = '3.11'
-- Maximum time in ms for an interpreter to answer; a broken shim or a network drive may never do so.
local PROBE_TIMEOUT = 5000
local PROBE = 'import sys; print("%d.%d.%d" % sys.version_info[:3])'

---@class mcp-tools.bridge.PythonFault
---@field message string
---@field advice string how to fix it: a command to run, or what to write
---@field needs_install? boolean whether `:McpTools install` fixes it
---@field under_way? boolean whether an installation is running

---@class mcp-tools.bridge.Runtime
---@field command string[]
---@field source 'command'|'python'|'environment' which option, or the private environment
---@field python? string the interpreter, unless the command is the user's
---@field version? string

--- Returns the directory of the private environment.
---@return string
function M.environment_dir()
  return vim.fs.joinpath(vim.fn.stdpath('data') --[[@as string]], 'mcp-tools', 'venv')
end

--- Returns the path of the interpreter in an environment.
---@param dir string
---@return string
function M.interpreter(dir)
  return vim.fs.joinpath(dir, 'bin', 'python')
end

--- Returns the version of the interpreter from which an environment was made.
---@param dir string
---@return string?
function M.environment_version(dir)
  local text = read_sync(vim.fs.joinpath(dir, 'pyvenv.cfg'))
  return text and text:match('version[_info]*%s*=%s*(%d[%d.]*)')
end

--- Makes a fault that `:McpTools install` fixes.
---@param message string
---@return mcp-tools.bridge.PythonFault
local function missing(message)
  return { message = message, advice = 'Run :McpTools install', needs_install = true }
end

-- Maximum duration of an installation in s. An older file belongs to one that hangs, or that a reboot has ended.
local MAX_INSTALL_TIME = 15 * 60

--- Reads the file that scripts/install-env writes about an installation that is running or has failed.
---@param dir string
---@return mcp-tools.bridge.PythonFault?
local function installation_fault(dir)
  local file = dir .. '.lock'
  local ok, note = pcall(vim.json.decode, read_sync(file) or '{}')
  if not ok or type(note) ~= 'table' then
    return nil -- the file is being written
  elseif note.failed then
    return missing(('the Python environment of the bridge could not be installed: %s'):format(note.failed))
  elseif type(note.pid) == 'number' then
    local stat = uv.fs_stat(file)
    if stat and os.time() - stat.mtime.sec < MAX_INSTALL_TIME and uv.kill(note.pid, 0) == 0 then
      return {
        message = 'the Python environment of the bridge is being installed',
        advice = 'The bridge starts automatically when it is finished',
        needs_install = true,
        under_way = true,
      }
    end
    return missing('the installation of the Python environment of the bridge was interrupted')
  end
end

--- Returns why the private environment cannot be used; nil if it fits this version of the plugin.
---@return mcp-tools.bridge.PythonFault?
function M.environment_fault()
  local dir = M.environment_dir()
  local plugin_dir = project.plugin_dir()
  local lock = read_sync(vim.fs.joinpath(plugin_dir, 'requirements.lock'))
    or read_sync(vim.fs.joinpath(plugin_dir, 'conf', 'requirements.lock')) -- LuaRocks puts single files there
  if not lock then
    return {
      message = 'requirements.lock is missing from ' .. plugin_dir,
      advice = 'Install the plugin again with your plugin manager',
    }
  end
  local stamp = read_sync(vim.fs.joinpath(dir, '.lock-hash'))
  local fits = stamp and trim(stamp) == vim.fn.sha256(lock)
  local unfinished = not fits and installation_fault(dir)
  if unfinished then
    return unfinished
  elseif not stamp then
    return missing('Python is not set up')
  elseif not fits then
    return missing('Python is set up for another version of the plugin')
  elseif not uv.fs_access(M.interpreter(dir), 'X') then
    -- A virtual environment refers to the interpreter it was made from, which a system upgrade may remove.
    return missing('the Python interpreter of the environment of the bridge no longer exists')
  end
end

--- Returns the file of the option `python.packages`. A relative path is relative to the user's configuration directory.
---@return string? path nil if the option is not set, or tools do not run in the private environment
function M.packages_file()
  local name = config.get('python.packages')
  if name == nil or config.get('bridge.python') ~= nil then
    return nil
  end
  if name:match('^~/') then
    return uv.os_homedir() .. name:sub(2)
  elseif name:match('^/') then
    return name
  end
  return vim.fs.joinpath(vim.fn.stdpath('config') --[[@as string]], name)
end

--- Returns why the packages of the option `python.packages` are not installed; the bridge runs without them.
---@return mcp-tools.bridge.PythonFault?
function M.packages_fault()
  local name, python, file = config.get('python.packages'), config.get('bridge.python'), M.packages_file()
  if name ~= nil and python ~= nil then
    return {
      message = 'python.packages is ignored because bridge.python is set',
      advice = ('Install the packages there: %s -m pip install -r %s'):format(python, name),
    }
  elseif not file then
    return nil
  end
  local text = read_sync(file)
  local stamp = read_sync(vim.fs.joinpath(M.environment_dir(), '.packages-hash'))
  if not text then
    return {
      message = ('python.packages: %s cannot be read'):format(file),
      advice = 'Create the file, or remove the option',
    }
  elseif not stamp then
    return missing(('the packages of %s are not installed'):format(file))
  elseif trim(stamp) ~= vim.fn.sha256(text) then
    return missing(('%s has changed since its packages were installed'):format(file))
  end
end

local probed = {} ---@type table<string, string> interpreter → version

--- Asks an interpreter for its version; does not block.
---@param python string
---@param cb fun(version: string?, err: string?)
local function probe(python, cb)
  if probed[python] then
    return cb(probed[python])
  end
  local opts = { timeout = PROBE_TIMEOUT, cwd = project.plugin_dir() }
  process.run({ python, '-I', '-c', PROBE }, opts, function(result)
    probed[python] = result.ok and result.stdout:match('^%d+%.%d+%.%d+') or nil
    local last_line = strings.last_line(trim(result.stderr))
    cb(probed[python], last_line ~= '' and last_line or result.fault)
  end)
end

--- Checks the interpreter of the option `bridge.python`.
---@param python string
---@param cb fun(runtime: mcp-tools.bridge.Runtime?, fault: mcp-tools.bridge.PythonFault?)
local function chosen(python, cb)
  local path = vim.fn.exepath(vim.fn.expand(python) --[[@as string]])
  local advice = ('Set bridge.python to Python %s or newer, or leave it out and run :McpTools install'):format(
    MINIMUM_TEXT
  )
  if path == '' then
    return cb(nil, { message = ('bridge.python: %s is not executable'):format(python), advice = advice })
  end
  probe(path, function(version, err)
    if not version then
      cb(nil, { message = ('bridge.python: %s does not run: %s'):format(path, err), advice = advice })
    elseif vim.version.lt(version:match('^%d+%.%d+') or '0', MINIMUM) then
      local text = 'bridge.python: %s is Python %s, but the bridge needs %s or newer'
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

--- Finds the interpreter from the options or the private environment. May call `cb` before it returns.
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

--- Finds the command of the bridge. May call `cb` before it returns.
---@param cb fun(runtime: mcp-tools.bridge.Runtime?, fault: mcp-tools.bridge.PythonFault?)
function M.resolve(cb)
  local command = config.get('bridge.command')
  if command == nil then
    return M.resolve_python(cb)
  end
  command = type(command) == 'string' and { command } or command
  if #command == 0 or command[1] == '' then
    return cb(nil, { message = 'bridge.command is empty', advice = 'Set bridge.command to a command, or remove it' })
  end
  cb({ command = vim.list_slice(command), source = 'command' })
end

return M
