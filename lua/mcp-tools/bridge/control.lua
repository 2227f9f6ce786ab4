--- Start, stop and restart of the bridge, and the installation of what it needs. One bridge per editor.

local Supervisor = require('mcp-tools.bridge.supervisor')
local attachment = require('mcp-tools.bridge.attachment')
local await_install = require('mcp-tools.bridge.await_install')
local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local identity = require('mcp-tools.instances.identity')
local install = require('mcp-tools.bridge.install')
local instances = require('mcp-tools.instances.file')
local global_state = require('mcp-tools.util.global_state')
local launch = require('mcp-tools.bridge.launch')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.instances.project')

---@class mcp-tools.bridge.Control
local M = {}

---@class mcp-tools.bridge.StartOpts
---@field nvim_socket? string address of this editor; default v:servername
---@field port? integer this time only; 0 = the stable one
---@field on_ready? fun(port: integer)
---@field on_stop? fun()
---@field announce? boolean say when it is ready
---@field root? string a folder: from now on the editor stands for the project that it lies in

local request = {} ---@type mcp-tools.bridge.StartOpts of the last start, as far as a restart repeats it
local supervisor ---@type mcp-tools.bridge.Supervisor
local after_earlier ---@type fun()[]? what waits for the end of the bridge that an earlier load of the plugin had

---@param done fun(spec: mcp-tools.bridge.ProcessSpec?, err: string?)
local function prepare(done)
  if after_earlier then
    table.insert(after_earlier, function()
      prepare(done)
    end)
    return
  end
  launch.prepare(request, function(prepared, fault)
    current.prepared, current.fault = prepared, fault
    if prepared then
      project.fix(prepared.identity.root)
    end
    done(prepared and prepared.spec, fault and fault.message)
  end)
end

--- The environment that was missing is there.
local function built()
  if supervisor.state == 'failed' and not install.is_running() then
    request.announce = true -- the last thing that was said is that it does not run
    M.start(request)
  end
end

--- For who has never had a bridge: what was told at the start of Neovim is no longer on the screen.
local FIRST_STEPS = ' or welcome'

--- The environment is still missing; of an installation of this editor's own install.lua has said all.
---@param what mcp-tools.bridge.PythonFault
local function hindered(what)
  if supervisor.state ~= 'failed' or install.is_running() or install.last_error() then
    return
  end
  current.fault, supervisor.last_error = what, what.message
  if what.under_way then
    notify.once('bridge', 'info', ('%s; the bridge starts by itself then'):format(what.message))
  else
    local is_new = require('mcp-tools.bridge.first_time').is_now() -- start-up cost
    notify.once('bridge', 'error', what.message, what.advice .. (is_new and FIRST_STEPS or ''))
  end
end

---@param err string
local function give_up(err)
  local fault, prepared = current.fault, current.prepared
  if fault and fault.needs_install then
    await_install.await(built, hindered)
  elseif fault then
    notify.once('bridge', 'error', err, fault.advice)
  else
    fault = launch.fault(err, prepared and prepared.source)
    current.fault = fault
    notify.once('bridge', 'error', ('the bridge does not run: %s'):format(err), fault.advice)
  end
end

local stop_watch = function() end

--- Restarts the bridge with the token that another editor of the project has made, because a foreign process may know
--- the old one. A restart, so that every client finds out at once and no connection with the old token stays.
---@param token string
local function adopt(token)
  log.info('another Neovim has made a new token for this project: the bridge is restarted with it')
  current.adopted = token
  supervisor:restart()
end

---@param state mcp-tools.bridge.State
local function on_state(state)
  stop_watch()
  if state == 'ready' then
    current.fault = nil
    stop_watch = identity.watch(current.prepared.identity, adopt)
    current.publish()
    current.announce(request.announce)
  else
    await_install.forget()
    attachment.reset()
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

local leave_watched = false

local function watch_leave()
  if leave_watched then
    return
  end
  leave_watched = true
  vim.api.nvim_create_autocmd('VimLeavePre', {
    group = vim.api.nvim_create_augroup('mcp-tools.bridge', {}),
    callback = function()
      await_install.forget()
      instances.remove()
      supervisor:abandon() -- the signal is enough: the bridge also ends when the editor's socket does
    end,
  })
end

--- The person's own callbacks, read when they are due so that a later `setup()` counts.
local function configured()
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

--- The project stays, wherever the person goes: clients are configured for its port and token.
---@param root? string
local function move(root)
  if root then
    project.fix(project.find(root))
  end
end

--- Starts the bridge, or joins the start that is under way: `on_ready` is called in every case.
---@param opts? mcp-tools.bridge.StartOpts
function M.start(opts)
  opts = opts or {}
  watch_leave()
  if not supervisor:is_wanted() then
    request = { nvim_socket = opts.nvim_socket, port = opts.port, announce = opts.announce }
    move(opts.root)
    notify.forget('bridge')
    supervisor:start(configured(), opts)
  else
    supervisor:start(opts)
  end
end

--- Stops the bridge without waiting for it.
---@param cb? fun() when it has ended
function M.stop(cb)
  supervisor:stop(cb)
end

--- Stops and starts on the same port and token, or for another project. Starts when nothing runs.
---@param opts? { announce?: boolean, root?: string }
function M.restart(opts)
  opts = opts or {}
  request.announce = opts.announce
  if supervisor:is_wanted() then
    move(opts.root)
    supervisor:restart()
  else
    M.start(vim.tbl_extend('force', request, opts))
  end
end

--- Builds the Python environment, then starts the bridge, or renews the one that runs.
---@param opts? mcp-tools.bridge.InstallOpts
function M.install(opts)
  install.run(opts, function(err)
    local prepared = current.prepared
    if not err and prepared and prepared.source == 'environment' and supervisor:is_wanted() then
      supervisor:restart() -- it would load the rest of its modules from the new environment
    elseif not err then
      built()
    end
  end)
end

--- Whether the bridge runs or is going to.
---@return boolean
function M.is_wanted()
  return supervisor:is_wanted()
end

--- The plugin is loaded again: ours takes the place of the bridge that belongs to the modules of before.
---@param earlier { is_wanted: (fun(): boolean), stop: fun(cb: fun()) }
local function replace(earlier)
  local wanted = earlier.is_wanted()
  after_earlier = {}
  earlier.stop(function()
    local waiting = after_earlier or {}
    after_earlier = nil
    for _, go_on in ipairs(waiting) do
      go_on()
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
