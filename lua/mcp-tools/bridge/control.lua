--- Starts, stops and restarts the bridge, and installs its environment. One process at a time, restarted with back-off.

local Process = require('mcp-tools.bridge.process')
local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local identity = require('mcp-tools.instances.identity')
local install = require('mcp-tools.bridge.install')
local interpreter = require('mcp-tools.bridge.interpreter')
local instances = require('mcp-tools.instances.file')
local global_state = require('mcp-tools.util.global_state')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')
local timer = require('mcp-tools.util.timer')

---@class mcp-tools.bridge.Control
local M = {}

---@class mcp-tools.bridge.StartOpts: mcp-tools.bridge.Watcher
---@field nvim_socket? string address of this editor; default v:servername
---@field port? integer for this start only; 0 = the project's port
---@field on_ready? fun(port: integer)
---@field on_stop? fun()
---@field announce? boolean show a notification when it is ready
---@field root? string a directory, whose project the editor serves from now on

---@class mcp-tools.bridge.Watcher
---@field on_ready? fun(port: integer)
---@field on_stop? fun()

---@class mcp-tools.bridge.Launch
---@field spec mcp-tools.bridge.ProcessSpec
---@field identity mcp-tools.bridge.Identity
---@field socket string address of this editor
---@field host string
---@field source 'command'|'python'|'environment'
---@field key string by which the process identifies itself when it attaches
---@field version? string of Python, if known

--- Makes a fault. Its advice is general, or to run the installation if a Python module is missing.
---@param message string
---@param source? 'command'|'python'|'environment'
---@return mcp-tools.bridge.PythonFault
local function fault_of(message, source)
  if source == 'environment' and (message:find('ModuleNotFoundError') or message:find('ImportError')) then
    return { message = message, advice = 'Run :McpTools install' }
  end
  return { message = message, advice = 'See :McpTools log; :McpTools start tries again' }
end

---@param runtime mcp-tools.bridge.Runtime
---@param socket string
---@param port integer
---@param launch string
---@return table<string, string|false>
local function environment(runtime, socket, port, launch)
  local is_ours = runtime.source ~= 'command'
  local path = vim.fs.dirname(project.python_package())
  if vim.env.PYTHONPATH then
    path = path .. ':' .. vim.env.PYTHONPATH
  end
  return {
    NVIM_LISTEN_ADDRESS = socket,
    MCP_PORT = tostring(port),
    -- Other processes can read a process's environment, so the token is sent by stdin.
    MCP_TOOLS_TOKEN_STDIN = '1',
    MCP_TOOLS_LAUNCH = launch,
    MCP_AUTH_TOKEN = false,
    MCP_LOG_FILE = config.get('bridge.log_file') or false,
    MCP_TOOL_TIMEOUT = tostring(config.get('bridge.tool_timeout')),
    MCP_TOOLS_PORT_FALLBACK = '1',
    MCP_TOOLS_INSTANCE_DIR = instances.dir(),
    MCP_TOOLS_HOST = config.get('bridge.host'),
    -- Variables that the user has set for another Python must not affect the interpreter that this plugin chooses.
    PYTHONPATH = not is_ours and path or false,
    PYTHONHOME = not is_ours and vim.env.PYTHONHOME or false,
  }
end

--- Prepares a start. May call `done` before it returns.
---@param request { nvim_socket?: string, port?: integer }
---@param done fun(prepared: mcp-tools.bridge.Launch?, fault: mcp-tools.bridge.PythonFault?)
local function prepare(request, done)
  interpreter.resolve(function(runtime, fault)
    if not runtime then
      return done(nil, fault)
    end
    local own_identity, err = identity.load(project.root())
    if not own_identity then
      return done(nil, fault_of(err))
    end
    instances.clean()
    local socket = request.nvim_socket or vim.v.servername
    if socket == '' then
      local started, address = pcall(vim.fn.serverstart)
      if not started then
        return done(nil, fault_of('the bridge cannot reach this editor: ' .. address))
      end
      socket = address
    end
    local port = (request.port or 0) ~= 0 and request.port or own_identity.port
    local launch = vim.fn.sha256(('%d %d'):format(vim.uv.os_getpid(), vim.uv.hrtime())):sub(1, 32)
    done({
      key = launch,
      identity = own_identity,
      socket = socket,
      host = config.get('bridge.host'),
      source = runtime.source,
      version = runtime.version,
      spec = {
        command = runtime.command,
        env = environment(runtime, socket, port, launch),
        stdin = own_identity.token .. '\n',
        -- With `python -m`, the working directory may provide modules, so it must not be the project.
        cwd = project.plugin_dir(),
      },
    })
  end)
end

local MAX_TRIES = 5
--- Delay of the first retry in ms. It doubles with each retry, so a bridge that cannot run is reported within eight
--- seconds.
local BACKOFF = 250
--- Time in ms after which earlier crashes are forgotten.
M.STABLE = 60000

local wanted = false -- whether the bridge should run; `current.state` is what it does
local request = {} ---@type mcp-tools.bridge.StartOpts of the last start; a restart repeats it
local attempt = 0 -- changes with each start and stop, so that the answer of an earlier `prepare` is ignored
local alarm ---@type mcp-tools.Timer?
local waits_for_earlier = false -- for the end of the bridge from an earlier load of the plugin

local watchers = {} ---@type mcp-tools.bridge.Watcher[] of the current bridge, or of the next one if none runs
local next_watchers = {} ---@type mcp-tools.bridge.Watcher[] of the bridge that follows the one that is ending
local stop_callbacks = {} ---@type fun()[]

--- Starts the bridge after the missing environment was installed.
local function on_installed()
  if current.state == 'failed' and not install.is_running() then
    request.announce = true -- the last notification was that the bridge does not run
    M.start(request)
  end
end

--- Returns whether this user has never run a bridge.
---@return boolean
local function is_new_user()
  return not vim.uv.fs_stat(vim.fs.joinpath(project.state_dir(), 'projects'))
end

--- Shows the one-time hint to a user who has never run a bridge, once.
function M.show_hint()
  local dir = project.state_dir()
  local file = vim.fs.joinpath(dir, 'welcomed.json')
  if not is_new_user() or vim.uv.fs_stat(file) or notify.has_warned() then
    return -- a warning must stay visible; the next start shows the hint
  end
  local ok, err = private_files.ensure_dir(dir)
  if ok then
    ok, err = private_files.write(file, { at = os.time() })
  end
  if ok then
    notify.info('new here? :McpTools welcome')
  else
    log.warn('%s', err) -- without the file the hint would appear at each start
  end
end

--- Reports that the environment is still missing. An installation by this editor reports its own errors.
---@param fault mcp-tools.bridge.PythonFault
local function on_still_missing(fault)
  if current.state ~= 'failed' or install.is_running() or install.last_error() then
    return
  end
  current.fault, current.last_error = fault, fault.message
  if fault.under_way then
    notify.once('bridge', 'info', ('%s; the bridge starts automatically afterwards'):format(fault.message))
  else
    local advice = fault.needs_install and is_new_user() and 'Run :McpTools welcome' or fault.advice
    notify.once('bridge', 'error', fault.message, advice)
  end
end

local stop_watch = function() end
local restart

--- Restarts the bridge with a token that another editor of the project has made, because a foreign process may know the
--- old one. With a restart, all clients notice immediately and no connection keeps the old token.
---@param token string
local function adopt(token)
  log.info('another Neovim made a new token for this project; the bridge restarts with it')
  current.adopted = token
  restart()
end

---@param state mcp-tools.bridge.State
local function set(state)
  if current.state == state then
    return
  end
  log.debug('bridge: %s -> %s', current.state, state)
  current.state = state
  stop_watch()
  if state == 'ready' then
    current.fault = nil
    stop_watch = identity.watch(current.launch.identity, adopt)
    current.publish()
    current.announce(request.announce)
  else
    install.stop_waiting()
    current.reset()
    instances.remove()
  end
  current.changed()
end

---@param ms? integer nil: only stops the previous alarm
---@param fn? fun()
local function set_alarm(ms, fn)
  if alarm then
    alarm:stop()
  end
  alarm = ms and timer.after(ms, fn --[[@as fun()]])
end

--- Calls a callback; logs and shows its error.
---@param what string
---@param fn? function
---@param ... any
local function call_guarded(what, fn, ...)
  local ok, err = log.guard(what, fn or function() end, ...)
  if not ok then
    notify.error(('%s failed: %s'):format(what, tostring(err):match('[^\n]*')))
  end
end

local function notify_ready()
  for _, watcher in ipairs(vim.list_slice(watchers)) do
    local on_ready = watcher.on_ready
    watcher.on_ready = nil
    call_guarded('on_ready', on_ready, current.port)
  end
end

--- Removes the watchers of the ended bridge, and returns a function that calls their `on_stop`. Those of the next
--- bridge stay.
---@return fun() notify_stopped
local function take_watchers()
  local ended, callbacks = watchers, stop_callbacks
  watchers, next_watchers, stop_callbacks = next_watchers, {}, {}
  return function()
    for _, watcher in ipairs(ended) do
      call_guarded('on_stop', watcher.on_stop)
    end
    for _, callback in ipairs(callbacks) do
      call_guarded('stop callback', callback)
    end
  end
end

---@param err string
local function give_up(err)
  local fault = current.fault or fault_of(err, current.launch and current.launch.source)
  wanted, current.fault, current.last_error = false, fault, err
  set('failed')
  if fault.needs_install then
    install.await(on_installed, on_still_missing)
  else
    notify.once('bridge', 'error', ('the bridge does not run: %s'):format(err), fault.advice)
  end
  vim.schedule(take_watchers()) -- `start()` may still be running
end

local begin

--- Handles that the process is ready.
---@param process mcp-tools.bridge.Process
---@param port integer
local function on_ready(process, port)
  if process ~= current.process or current.state ~= 'starting' then
    return
  end
  current.port = port
  set('ready')
  current.send_acp_tokens()
  set_alarm(M.STABLE, function()
    current.tries = 0
  end)
  notify_ready()
end

--- Continues after the end of a process that was stopped.
local function after_stop()
  set('stopped')
  take_watchers()()
  if wanted and current.state == 'stopped' then
    begin()
  end
end

---@param process mcp-tools.bridge.Process
---@param fault? string
local function on_exit(process, fault)
  if process ~= current.process then
    return
  end
  current.process, current.port = nil, nil
  set_alarm()
  if current.state == 'stopping' then
    return after_stop()
  end
  fault = fault or 'the process ended'
  if current.tries >= MAX_TRIES then
    return give_up(fault)
  end
  local delay = BACKOFF * 2 ^ current.tries
  current.tries, current.last_error = current.tries + 1, fault
  log.warn('bridge: %s; retry %d of %d in %g s', fault, current.tries, MAX_TRIES, delay / 1000)
  set('waiting')
  set_alarm(delay, begin)
end

--- Starts a process.
function begin()
  attempt = attempt + 1
  local this = attempt
  set('starting')
  if waits_for_earlier then
    return
  end
  prepare(request, function(prepared, fault)
    if this ~= attempt then
      return -- stopped or restarted while the command was looked up
    end
    current.launch, current.fault = prepared, fault
    if not prepared then
      return give_up(fault.message)
    end
    project.fix(prepared.identity.root)
    local err
    current.process, err = Process.spawn(prepared.spec, { on_ready = on_ready, on_exit = on_exit })
    if err then
      give_up(err)
    end
  end)
end

--- Ends the current process; another one follows if it is wanted.
local function finish()
  if current.state == 'stopping' then
    return
  end
  attempt = attempt + 1
  set_alarm()
  current.port = nil
  if current.process then
    set('stopping')
    return current.process:stop()
  end
  set('stopped')
  vim.schedule(take_watchers())
  if wanted then
    begin()
  end
end

--- Ends the current process and starts the next one; watchers do not get `on_stop`.
function restart()
  next_watchers, watchers = vim.list_extend(watchers, next_watchers), {}
  current.tries, current.last_error = 0, nil
  finish()
end

local function watch_exit()
  vim.api.nvim_create_autocmd('VimLeavePre', {
    group = vim.api.nvim_create_augroup('mcp-tools.bridge', {}),
    callback = function()
      install.stop_waiting()
      instances.remove()
      attempt, wanted, current.state = attempt + 1, false, 'stopped' -- no callback follows
      set_alarm()
      if current.process then
        current.process:signal('sigterm') -- no need to wait: it also ends when the editor closes its socket
        current.process = nil
      end
    end,
  })
end

--- The user's callbacks. They are looked up when they are called, so that a later `setup()` applies.
---@type mcp-tools.bridge.Watcher
local USER = {
  on_ready = function(port)
    local fn = config.get('on_ready')
    return fn and fn(port)
  end,
  on_stop = function()
    local fn = config.get('on_stop')
    return fn and fn()
  end,
}

---@param watcher mcp-tools.bridge.Watcher
local function watch(watcher)
  local list = current.state == 'stopping' and next_watchers or watchers
  table.insert(list, { on_ready = watcher.on_ready, on_stop = watcher.on_stop })
end

--- Sets the project. It stays when the working directory changes: clients are configured for its port and token.
---@param root? string
local function set_project(root)
  if root then
    project.fix(project.find(root))
  end
end

--- Starts the bridge, or joins a start in progress; `on_ready` is called once in either case, and `on_stop` once when
--- the bridge has ended or could not start.
---@param opts? mcp-tools.bridge.StartOpts
function M.start(opts)
  if vim.v.exiting ~= vim.NIL then
    return -- Neovim waits for a job that starts after VimLeavePre
  end
  opts = opts or {}
  watch_exit()
  if wanted then
    watch(opts)
    if current.state == 'ready' then
      vim.schedule(function()
        if current.state == 'ready' then
          notify_ready()
        end
      end)
    end
    return
  end
  wanted, current.tries, current.last_error = true, 0, nil
  request = { nvim_socket = opts.nvim_socket, port = opts.port, announce = opts.announce }
  set_project(opts.root)
  notify.forget('bridge')
  watch(USER)
  watch(opts)
  if current.state ~= 'stopping' then
    begin()
  end
end

--- Stops the bridge without blocking.
---@param cb? fun() called when it has ended
function M.stop(cb)
  wanted = false
  watchers, next_watchers = vim.list_extend(watchers, next_watchers), {}
  table.insert(stop_callbacks, cb)
  finish()
end

--- Restarts the bridge on the same port and token, or for another project. Starts it if none runs.
---@param opts? { announce?: boolean, root?: string }
function M.restart(opts)
  opts = opts or {}
  request.announce = opts.announce
  if wanted then
    set_project(opts.root)
    restart()
  else
    M.start(vim.tbl_extend('force', request, opts))
  end
end

--- Installs the Python environment, then starts the bridge, or restarts it.
---@param opts? mcp-tools.bridge.InstallOpts
function M.install(opts)
  install.run(opts, function(err)
    local prepared = current.launch
    if not err and prepared and prepared.source == 'environment' and wanted then
      restart() -- the old process would load further modules from the new environment
    elseif not err then
      on_installed()
    end
  end)
end

--- Returns whether the bridge runs or will run: false after `stop()` or when it gave up.
---@return boolean
function M.is_wanted()
  return wanted
end

local earlier = global_state.bridge -- of an earlier load of the plugin
if earlier then
  waits_for_earlier = true
  local was_wanted = earlier.is_wanted()
  earlier.stop(function()
    waits_for_earlier = false
    if current.state == 'starting' then
      begin()
    end
  end)
  if was_wanted then
    M.start()
  end
end
global_state.bridge = { is_wanted = M.is_wanted, stop = M.stop }

return M
