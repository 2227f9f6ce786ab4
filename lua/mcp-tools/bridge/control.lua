-- Receives start, stop and what the bridge says about itself (from wire/). Sends port, token, endpoint and status.
-- Does not know about MCP or tools. One bridge per editor; the parts it is put together from are beside this file.
-- Longer than others by the list of what `status` tells.

local Attachment = require('mcp-tools.bridge.attachment')
local Supervisor = require('mcp-tools.bridge.supervisor')
local await_install = require('mcp-tools.bridge.await_install')
local config = require('mcp-tools.config')
local install = require('mcp-tools.bridge.install')
local instances = require('mcp-tools.bridge.instances')
local launch = require('mcp-tools.bridge.launch')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.files.project')

---@class mcp-tools.bridge.Control
local M = {}

---@class mcp-tools.bridge.StartOpts
---@field nvim_socket? string address of this editor; default v:servername
---@field port? integer this time only; 0 = the stable one
---@field on_ready? fun(port: integer)
---@field on_stop? fun()
---@field announce? boolean say when it is ready

local attachment = Attachment.new()
local found ---@type mcp-tools.bridge.Prepared? what the last start was made from
local fault ---@type mcp-tools.bridge.PythonFault?
local request = {} ---@type mcp-tools.bridge.StartOpts
local announced = {} ---@type (fun(): string?)[]
local supervisor ---@type mcp-tools.bridge.Supervisor

---@param done fun(spec: mcp-tools.bridge.ProcessSpec?, err: string?)
local function prepare(done)
  launch.prepare(request, function(prepared, new_fault)
    found, fault = prepared, new_fault
    if prepared then
      project.fix(prepared.identity.root)
    end
    done(prepared and prepared.spec, new_fault and new_fault.message)
  end)
end

local function publish()
  local port = M.get_port()
  if port then
    instances.publish({
      root = found.identity.root,
      socket = found.socket,
      url = launch.url(port),
      port = port,
      token = found.identity.token,
      boot = project.boot,
    })
  end
end

local function ready()
  publish()
  fault = nil
  notify.forget('bridge')
  local texts = { ('ready: %s'):format(launch.url(M.get_port())) }
  for _, more in ipairs(announced) do
    table.insert(texts, more())
  end
  local text = table.concat(texts, '; ')
  if request.announce or config.get('debug') then
    notify.info(text)
  else
    log.info('%s', text)
  end
end

--- The environment that was missing is there.
local function built()
  if supervisor.state == 'failed' and not install.is_running() then
    request.announce = true -- the last thing that was said is that it does not run
    M.start(request)
  end
end

--- The environment is still missing; of an installation of this editor's own install.lua has said all.
---@param what mcp-tools.bridge.PythonFault
local function hindered(what)
  if supervisor.state ~= 'failed' or install.is_running() or install.last_error() then
    return
  end
  fault, supervisor.last_error = what, what.message
  if what.under_way then
    notify.once('bridge', 'info', ('%s; the bridge starts by itself then'):format(what.message))
  else
    notify.once('bridge', 'error', what.message, what.advice)
  end
end

---@type table<mcp-tools.bridge.State, fun()>
local on_state = {
  ready = ready,
  starting = function()
    await_install.forget()
    attachment:reset()
  end,
}
for _, state in ipairs({ 'waiting', 'stopping', 'stopped', 'failed' }) do
  on_state[state] = function()
    attachment:reset()
    instances.remove()
  end
end

supervisor = Supervisor.new({
  launch = prepare,
  on_state = function(state)
    on_state[state]()
  end,
  on_give_up = function(err)
    if fault and fault.needs_install then
      await_install.await(built, hindered)
    elseif fault then
      notify.once('bridge', 'error', err, fault.advice)
    else
      fault = launch.fault(err, found and found.source)
      notify.once('bridge', 'error', ('the bridge does not run: %s. %s'):format(err, fault.advice))
    end
  end,
})

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

--- Has something more said whenever the bridge is ready.
---@param fn fun(): string?
function M.on_announce(fn)
  table.insert(announced, fn)
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

--- Starts the bridge, or joins the start that is under way: `on_ready` is called in every case.
---@param opts? mcp-tools.bridge.StartOpts
function M.start(opts)
  opts = opts or {}
  watch_leave()
  if not supervisor:is_wanted() then
    request = opts
    project.fix(nil) -- a restart stays where it is, another start is for where the person is now
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

--- Stops and starts on the same port and token. Starts when nothing runs.
---@param opts? { announce?: boolean }
function M.restart(opts)
  request = vim.tbl_extend('force', request, opts or {})
  if supervisor:is_wanted() then
    supervisor:restart()
  else
    M.start(request)
  end
end

--- Builds the Python environment, then starts the bridge, or renews the one that runs.
---@param opts? mcp-tools.bridge.InstallOpts
function M.install(opts)
  install.run(opts, function(err)
    if not err and found and found.source == 'environment' and supervisor:is_wanted() then
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

--- Whether there is a process, ready or starting.
---@return boolean
function M.is_running()
  return supervisor.process ~= nil and supervisor.state ~= 'stopping'
end

--- The port that clients reach; nil until the bridge is ready.
---@return integer?
function M.get_port()
  return supervisor.state == 'ready' and (attachment.port or supervisor.port) or nil
end

--- The token of the bridge that runs.
---@return string?
function M.get_auth_token()
  return M.is_running() and found and found.identity.token or nil
end

--- Where clients connect; nil until the bridge is ready.
---@return { url: string, token: string, port: integer }?
function M.endpoint()
  local port = M.get_port()
  return port and { url = launch.url(port), token = found.identity.token, port = port } or nil
end

--- A bridge has attached (wire/, `hello`).
---@param channel integer
---@param info mcp-tools.bridge.Hello
---@return { token?: string } answer a new token, when a stranger had our port and may have been sent the old one
function M.attached(channel, info)
  local process = supervisor.process
  -- A program of the person's own may be a wrapper, with the bridge as its child.
  local ours = process and (process.pid == info.pid or found.source ~= 'environment' or vim.fn.has('win32') == 1)
  if not ours then
    log.info('a bridge that this editor has not started is attached (pid %s)', tostring(info.pid))
    project.fix(project.root())
    return {}
  end
  return { token = attachment:attach(channel, info, found.identity) }
end

---@param channel integer
function M.detached(channel)
  attachment:detach(channel)
end

--- The bridge tells what it sees (wire/, `report`).
---@param kind string
---@param data table
function M.reported(kind, data)
  attachment:report(kind, data)
  if kind == 'listening' then
    publish()
  end
end

---@class mcp-tools.bridge.Status
---@field state mcp-tools.bridge.State
---@field running boolean
---@field attached boolean
---@field url? string
---@field port? integer
---@field wanted_port? integer
---@field port_holder? string
---@field root? string
---@field pid? integer
---@field source? 'command'|'python'|'environment'
---@field command? string[]
---@field python_version? string
---@field fault? mcp-tools.bridge.PythonFault
---@field tries integer
---@field last_error? string
---@field versions table<string, string>
---@field sessions? { count: integer, calls: integer, clients: table[] }
---@field blocked? { mode: string, at: integer }
---@field note? string
---@field identity_file? string

--- Everything that health and `:McpTools status` show. Never the token.
---@return mcp-tools.bridge.Status
function M.status()
  local port, hello = M.get_port(), attachment.hello
  local mine = found and found.identity or {}
  return {
    state = supervisor.state,
    running = M.is_running(),
    attached = attachment.channel ~= nil,
    url = port and launch.url(port),
    port = port,
    wanted_port = hello.wanted_port or mine.port,
    port_holder = hello.port_holder,
    root = mine.root,
    pid = supervisor.process and supervisor.process.pid,
    source = found and found.source,
    command = found and found.spec.command,
    python_version = hello.versions and hello.versions.python or (found and found.version),
    fault = fault,
    tries = supervisor.tries,
    last_error = supervisor.last_error,
    versions = hello.versions or {},
    sessions = attachment.sessions,
    blocked = attachment.blocked,
    note = attachment.note,
    identity_file = mine.path,
  }
end

return M
