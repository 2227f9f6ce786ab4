--- Starts, stops and restarts the bridge, and installs its environment. One bridge per editor.

local Supervisor = require('mcp-tools.bridge.supervisor')
local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local identity = require('mcp-tools.instances.identity')
local install = require('mcp-tools.bridge.install')
local instances = require('mcp-tools.instances.file')
local global_state = require('mcp-tools.util.global_state')
local launch = require('mcp-tools.bridge.launch')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')

---@class mcp-tools.bridge.Control
local M = {}

---@class mcp-tools.bridge.StartOpts: mcp-tools.bridge.Watcher
---@field nvim_socket? string address of this editor; default v:servername
---@field port? integer for this start only; 0 = the project's port
---@field on_ready? fun(port: integer)
---@field on_stop? fun()
---@field announce? boolean show a notification when it is ready
---@field root? string a directory, whose project the editor serves from now on

local request = {} ---@type mcp-tools.bridge.StartOpts of the last start; a restart repeats it
local supervisor ---@type mcp-tools.bridge.Supervisor
local after_earlier ---@type fun()[]? starts that wait for the end of the bridge from an earlier load of the plugin

---@param done fun(spec: mcp-tools.bridge.ProcessSpec?, err: string?)
local function prepare(done)
  if after_earlier then
    table.insert(after_earlier, function()
      prepare(done)
    end)
    return
  end
  launch.prepare(request, function(prepared, fault)
    current.launch, current.fault = prepared, fault
    if prepared then
      project.fix(prepared.identity.root)
    end
    done(prepared and prepared.spec, fault and fault.message)
  end)
end

--- Starts the bridge after the missing environment was installed.
local function on_installed()
  if supervisor.state == 'failed' and not install.is_running() then
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

--- Added to the advice to install, for new users: the hint from the start of Neovim is no longer visible.
local FIRST_STEPS = ' or welcome'

--- Reports that the environment is still missing. An installation by this editor reports its own errors.
---@param fault mcp-tools.bridge.PythonFault
local function on_still_missing(fault)
  if supervisor.state ~= 'failed' or install.is_running() or install.last_error() then
    return
  end
  current.fault, supervisor.last_error = fault, fault.message
  if fault.under_way then
    notify.once('bridge', 'info', ('%s; the bridge starts automatically afterwards'):format(fault.message))
  else
    notify.once('bridge', 'error', fault.message, fault.advice .. (is_new_user() and FIRST_STEPS or ''))
  end
end

---@param err string
local function give_up(err)
  local fault, prepared = current.fault, current.launch
  if fault and fault.needs_install then
    install.await(on_installed, on_still_missing)
  elseif fault then
    notify.once('bridge', 'error', err, fault.advice)
  else
    fault = launch.fault(err, prepared and prepared.source)
    current.fault = fault
    notify.once('bridge', 'error', ('the bridge does not run: %s'):format(err), fault.advice)
  end
end

local stop_watch = function() end

--- Restarts the bridge with a token that another editor of the project has made because a foreign process may know the
--- old one. With a restart, all clients notice immediately and no connection keeps the old token.
---@param token string
local function adopt(token)
  log.info('another Neovim made a new token for this project; the bridge restarts with it')
  current.adopted = token
  supervisor:restart()
end

---@param state mcp-tools.bridge.State
local function on_state(state)
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

supervisor = Supervisor.new({
  launch = prepare,
  on_state = on_state,
  on_give_up = give_up,
})
current.supervisor = supervisor

local watches_exit = false

local function watch_exit()
  if watches_exit then
    return
  end
  watches_exit = true
  vim.api.nvim_create_autocmd('VimLeavePre', {
    group = vim.api.nvim_create_augroup('mcp-tools.bridge', {}),
    callback = function()
      install.stop_waiting()
      instances.remove()
      supervisor:abandon() -- no need to wait: the bridge also ends when the editor closes its socket
    end,
  })
end

--- Returns callbacks that look up the user's own when they are due, so that a later `setup()` applies.
local function user_callbacks()
  return {
    on_ready = function(port)
      local fn = config.get('on_ready')
      return fn and fn(port)
    end,
    on_stop = function()
      local fn = config.get('on_stop')
      return fn and fn()
    end,
  }
end

--- Sets the project. It stays when the working directory changes: clients are configured for its port and token.
---@param root? string
local function set_project(root)
  if root then
    project.fix(project.find(root))
  end
end

--- Starts the bridge, or joins a start in progress; `on_ready` is called in either case.
---@param opts? mcp-tools.bridge.StartOpts
function M.start(opts)
  opts = opts or {}
  watch_exit()
  if not supervisor:is_wanted() then
    request = { nvim_socket = opts.nvim_socket, port = opts.port, announce = opts.announce }
    set_project(opts.root)
    notify.forget('bridge')
    supervisor:start(user_callbacks(), opts)
  else
    supervisor:start(opts)
  end
end

--- Stops the bridge without blocking.
---@param cb? fun() called when it has ended
function M.stop(cb)
  supervisor:stop(cb)
end

--- Restarts the bridge on the same port and token, or for another project. Starts it if none runs.
---@param opts? { announce?: boolean, root?: string }
function M.restart(opts)
  opts = opts or {}
  request.announce = opts.announce
  if supervisor:is_wanted() then
    set_project(opts.root)
    supervisor:restart()
  else
    M.start(vim.tbl_extend('force', request, opts))
  end
end

--- Installs the Python environment, then starts the bridge, or restarts it.
---@param opts? mcp-tools.bridge.InstallOpts
function M.install(opts)
  install.run(opts, function(err)
    local prepared = current.launch
    if not err and prepared and prepared.source == 'environment' and supervisor:is_wanted() then
      supervisor:restart() -- the old process would load further modules from the new environment
    elseif not err then
      on_installed()
    end
  end)
end

--- Returns whether the bridge runs or will run.
---@return boolean
function M.is_wanted()
  return supervisor:is_wanted()
end

--- Replaces the bridge of an earlier load of the plugin.
---@param earlier { is_wanted: (fun(): boolean), stop: fun(cb: fun()) }
local function replace(earlier)
  local wanted = earlier.is_wanted()
  after_earlier = {}
  earlier.stop(function()
    local waiting = after_earlier or {}
    after_earlier = nil
    for _, start in ipairs(waiting) do
      start()
    end
  end)
  if wanted then
    M.start()
  end
end

if global_state.bridge then
  replace(global_state.bridge)
end
global_state.bridge = { is_wanted = M.is_wanted, stop = M.stop }

return M
