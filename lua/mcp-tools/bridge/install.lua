--- Installs the Python environment. Only this part of the plugin downloads, and only on request.

local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local interpreter = require('mcp-tools.bridge.interpreter')
local process = require('mcp-tools.editor.process')
local project = require('mcp-tools.instances.project')
local strings = require('mcp-tools.util.strings')
local timer = require('mcp-tools.util.timer')
local trim = require('mcp-tools.util.trim')

local uv = vim.uv

local M = {}

-- In ms; a slow connection may need minutes for 20 MB of packages.
local TIMEOUT = 15 * 60 * 1000
-- scripts/install-env supports Python 3.8 and newer.
local PROBE = 'import sys; sys.exit(sys.version_info < (3, 8))'
local PROBE_TIMEOUT = 5000
local CANDIDATES = { 'python3', 'python3.13', 'python3.12', 'python3.11', 'python3.14', 'python' }

local waiting = nil ---@type (fun(err: string?))[]? callbacks of the current installation
local last_error ---@type string?
local on_done = function() end

--- Returns whether an installation is running.
---@return boolean
function M.is_running()
  return waiting ~= nil
end

--- Returns why the last installation failed.
---@return string?
function M.last_error()
  return last_error
end

--- Finds a Python that can run scripts/install-env, which then looks for one that is new enough for the environment.
--- The first on PATH may be too old even for that script, or a shim that does not run.
---@param cb fun(path: string?, seen: string[]) called on the main loop
local function find_python(cb)
  local seen = {}
  local probe_opts = { timeout = PROBE_TIMEOUT, cwd = project.plugin_dir() }
  local function try(i)
    local name = CANDIDATES[i]
    if not name then
      return cb(nil, seen)
    end
    local path = vim.fn.exepath(name)
    if path == '' or vim.list_contains(seen, path) then
      return try(i + 1)
    end
    table.insert(seen, path)
    process.run({ path, '-I', '-c', PROBE }, probe_opts, function(result)
      if result.ok then
        cb(path, seen)
      else
        try(i + 1)
      end
    end)
  end
  try(1)
end

--- Logs and shows the output of an installation.
---@return fun(stream: 'stdout'|'stderr', text: string)
local function reporter()
  local rest = { stdout = '', stderr = '' }
  return function(stream, text)
    text = rest[stream] .. text
    for line in strings.each_ended(text, '\n') do
      log[stream == 'stdout' and 'info' or 'warn']('install: %s', line)
      if stream == 'stdout' and line:find('%S') then
        notify.progress('install: ' .. line)
      end
    end
    rest[stream] = strings.last_line(text)
  end
end

---@class mcp-tools.bridge.InstallOpts
---@field command? string[] instead of scripts/install-env
---@field force? boolean rebuild an environment that is up to date

---@param opts mcp-tools.bridge.InstallOpts
---@param cb fun(command: string[]?, err: string?)
local function find_command(opts, cb)
  if opts.command then
    return cb(opts.command)
  end
  find_python(function(python, seen)
    if not python then
      local found = #seen > 0 and (' can be used (found %s)'):format(table.concat(seen, ', ')) or ''
      return cb(
        nil,
        ('no Python on PATH%s; install Python 3.11 or newer, then run :McpTools install again'):format(found)
      )
    end
    local script = vim.fs.joinpath(project.plugin_dir(), 'scripts', 'install-env')
    local command = { python, '-I', script, '--dir', interpreter.environment_dir() }
    if opts.force then
      table.insert(command, '--force')
    end
    vim.list_extend(command, interpreter.packages_file() and { '--packages', interpreter.packages_file() } or {})
    cb(command)
  end)
end

--- Calls `fn` after each installation.
---@param fn fun()
function M.on_done(fn)
  on_done = fn
end

--- Builds or renews the private environment.
---@param opts? mcp-tools.bridge.InstallOpts
---@param cb? fun(err: string?) called on the main loop at the end, also if an installation is already running
function M.run(opts, cb)
  if waiting then
    table.insert(waiting, cb)
    notify.info('an installation is already running')
    return
  end
  waiting = { cb }
  local function finish(fault)
    local callbacks = waiting or {}
    waiting, last_error = nil, fault
    if fault then
      notify.error('install: ' .. fault)
    else
      if vim.fn.executable('mcp-tools') == 0 then
        local program = vim.fs.joinpath(project.plugin_dir(), 'bin', 'mcp-tools')
        notify.info(('for mcp-tools in shells: ln -s %s ~/.local/bin/'):format(program))
      end
      notify.info('the Python environment of the bridge is ready')
      log.guard('a listener of the installation', on_done)
    end
    for _, callback in ipairs(callbacks) do
      log.guard('a callback of the installation', callback, fault)
    end
  end
  local report = reporter()
  report('stdout', 'running, this may take some minutes …\n')
  find_command(opts or {}, function(command, err)
    if not command then
      return finish(err)
    end
    -- A project must not provide Python modules, so it is not the working directory.
    local run_opts = { timeout = TIMEOUT, cwd = project.plugin_dir(), keep = 'tail', on_output = report }
    process.run(command, run_opts, function(result)
      local last_line = strings.last_line(trim(result.stderr)):gsub('^install%-env: ', '')
      finish(not result.ok and (last_line ~= '' and last_line or result.fault) or nil)
    end)
  end)
end

-- Interval of the checks in ms, while the bridge cannot start. The first one must not be earlier: a build step that
-- started together with this editor is not visible at once.
local CHECK_INTERVAL = 1500

local checks ---@type mcp-tools.Timer?

--- Stops waiting.
function M.stop_waiting()
  if checks then
    checks:stop()
  end
end

---@param path string
---@return string
local function version_of(path)
  local stat = uv.fs_stat(path)
  return stat and ('%d.%d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.ino) or 'none'
end

--- Waits for an installation by another process. Calls `on_built` once when the environment fits this version of the
--- plugin, and `on_fault` for each check that finds a change but no such environment.
---@param on_built fun()
---@param on_fault fun(fault: mcp-tools.bridge.PythonFault)
function M.await(on_built, on_fault)
  M.stop_waiting()
  local dir, seen = interpreter.environment_dir(), nil
  local under_way = false -- an installation that is running may end without a change of these files
  checks = timer.every(CHECK_INTERVAL, function()
    -- An installation writes the stamp last. (A file watch would miss a stamp written before it starts.)
    local now = version_of(vim.fs.joinpath(dir, '.lock-hash')) .. version_of(dir .. '.lock')
    if now == seen and not under_way then
      return
    end
    seen = now
    local fault = interpreter.environment_fault()
    if fault then
      under_way = fault.under_way == true
      return on_fault(fault)
    end
    log.info('the Python environment has been built')
    M.stop_waiting()
    on_built()
  end)
end

return M
