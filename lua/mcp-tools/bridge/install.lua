-- Receives `:McpTools install`. Sends one run of scripts/install-env, with its progress on screen and in the log.
-- Does not know about packages. The only part of the plugin that downloads, and only when it is called.

local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local python = require('mcp-tools.bridge.python')

local M = {}

-- A slow line may need minutes for 20 MB of packages; after this time something hangs.
local TIMEOUT = 15 * 60 * 1000
local CANDIDATES = { 'python3', 'python3.13', 'python3.12', 'python3.11', 'python3.14', 'python' }

local running = false
local last_error ---@type string?

---@return boolean
function M.is_running()
  return running
end

--- Why the last installation failed.
---@return string?
function M.last_error()
  return last_error
end

--- Any Python will do to start the program: it looks for one that is new enough itself.
---@return string?
local function some_python()
  for _, name in ipairs(CANDIDATES) do
    local path = vim.fn.exepath(name)
    if path ~= '' then
      return path
    end
  end
end

---@param on_line fun(line: string)
---@return fun(err: string?, chunk: string?)
local function by_line(on_line)
  local rest = ''
  return function(_, chunk)
    rest = rest .. (chunk or '\n')
    for line in rest:gmatch('([^\n]*)\n') do
      if line:find('%S') then
        on_line(line)
      end
    end
    rest = rest:match('[^\n]*$')
  end
end

---@class mcp-tools.bridge.InstallOpts
---@field command? string[] instead of scripts/install-env
---@field force? boolean build anew even when it is up to date

---@param opts mcp-tools.bridge.InstallOpts
---@return string[]? command, string? err
local function command_of(opts)
  if opts.command then
    return opts.command
  end
  local interpreter = some_python()
  if not interpreter then
    return nil, 'no Python on PATH: install Python 3.11 or newer, then run :McpTools install again'
  end
  local script = vim.fs.joinpath(python.plugin_root(), 'scripts', 'install-env')
  local command = { interpreter, script, '--dir', python.environment_dir() }
  if opts.force then
    table.insert(command, '--force')
  end
  return command
end

--- Builds or renews the private environment.
---@param opts? mcp-tools.bridge.InstallOpts
---@param cb? fun(err: string?) on the main loop
function M.run(opts, cb)
  cb = cb or function() end
  if running then
    notify.info('the installation is under way already')
    return
  end
  local command, err = command_of(opts or {})
  local function finish(fault)
    running, last_error = false, fault
    if fault then
      notify.error('install: ' .. fault)
    else
      notify.info('the Python environment of the bridge is ready')
    end
    cb(fault)
  end
  if not command then
    return finish(err)
  end
  running = true
  local last_line ---@type string?
  local function show(line)
    log.info('install: %s', line)
    vim.schedule(function()
      if running then
        notify.progress('install: ' .. line)
      end
    end)
  end
  show('working, this may take some minutes …')
  local ok, spawn_err = pcall(vim.system, command, {
    timeout = TIMEOUT,
    stdout = by_line(show),
    stderr = by_line(function(line)
      last_line = line
      log.warn('install: %s', line)
    end),
  }, function(done)
    vim.schedule(function()
      if done.code == 0 and done.signal == 0 then
        finish()
      elseif done.signal ~= 0 then
        finish(last_line or ('ended by signal %d'):format(done.signal))
      else
        finish(last_line or ('ended with code %d, see :McpTools log'):format(done.code))
      end
    end)
  end)
  if not ok then
    finish(tostring(spawn_err))
  end
end

return M
