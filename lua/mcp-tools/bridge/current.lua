--- The bridge of this editor as it is: its process, what it was started from, what it has reported; port, token,
--- endpoint, status; and who is told that it is ready.

local config = require('mcp-tools.config')
local instances = require('mcp-tools.instances.file')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.instances.project')

---@class mcp-tools.bridge.Current
---@field supervisor mcp-tools.bridge.Supervisor|{ state: 'stopped', tries: 0 } the latter until the first start
---@field prepared? mcp-tools.bridge.Prepared what the last start was made from
---@field fault? mcp-tools.bridge.PythonFault
---@field said mcp-tools.bridge.Said
---@field adopted? string token that another editor has just made, because of which the bridge is restarted
local M = {
  supervisor = { state = 'stopped', tries = 0 },
  said = { hello = {} },
}

---@class mcp-tools.bridge.Said what the bridge has told about itself
---@field channel? integer
---@field hello mcp-tools.bridge.Hello|{} empty until it has attached
---@field port? integer the one that clients should use
---@field sessions? { count: integer, calls: integer, clients: table[] }
---@field blocked? { mode: string, at: integer } the last time the editor kept the bridge waiting
---@field note? string why the token is a new one
---@field integrations? table[] servers of agents that it registers with: `url`, `state`, `fault`
---@field endpoints? mcp-tools.bridge.SaidEndpoints which endpoints of companions are open

---@class mcp-tools.bridge.SaidEndpoints
---@field open string[] names
---@field failed table<string, string> name → why it does not stand

local listeners = {} ---@type (fun(what: 'clients'?))[]

--- Calls `fn` whenever any of this may be another.
---@param fn fun(what: 'clients'?) `clients`: nothing but who is connected
---@return fun() stop
function M.on_change(fn)
  table.insert(listeners, fn)
  return function()
    listeners = vim.tbl_filter(function(other)
      return other ~= fn
    end, listeners)
  end
end

--- Something is another now.
---@param what? 'clients'
function M.changed(what)
  for _, fn in ipairs(listeners) do
    log.guard('who follows the bridge', fn, what)
  end
end

--- Whether there is a process, ready or starting.
---@return boolean
function M.is_running()
  return M.supervisor.process ~= nil and M.supervisor.state ~= 'stopping'
end

--- The port that clients reach; nil until the bridge is ready.
---@return integer?
function M.get_port()
  return M.supervisor.state == 'ready' and (M.said.port or M.supervisor.port) or nil
end

--- The token of the bridge that runs.
---@return string?
function M.get_auth_token()
  return M.is_running() and M.prepared and M.prepared.identity.token or nil
end

--- Where clients on this machine reach a port of the bridge.
---@param host string
---@param port integer
---@return string
local function url_of(host, port)
  return ('http://%s:%d/mcp'):format(host:find(':', 1, true) and ('[%s]'):format(host) or host, port)
end

--- Where clients connect; nil until the bridge is ready.
---@return { url: string, token: string, port: integer }?
function M.endpoint()
  local port, prepared = M.get_port(), M.prepared
  return port and { url = url_of(prepared.host, port), token = prepared.identity.token, port = port } or nil
end

local extras = {} ---@type (fun(): string?)[]

--- Has something more said whenever the bridge is ready.
---@param fn fun(): string?
function M.on_announce(fn)
  table.insert(extras, fn)
end

--- Brings the instance file up to date.
function M.publish()
  local endpoint = M.endpoint()
  if endpoint then
    instances.publish({
      root = M.prepared.identity.root,
      socket = M.prepared.socket,
      url = endpoint.url,
      port = endpoint.port,
      token = endpoint.token,
      boot = project.boot,
    })
  end
end

--- Says where the bridge listens.
---@param aloud? boolean on the screen; else in the log
function M.announce(aloud)
  notify.forget('bridge')
  local texts = { ('ready: %s'):format(M.endpoint().url) }
  for _, extra in ipairs(extras) do
    table.insert(texts, extra())
  end
  local text = table.concat(texts, '; ')
  if aloud or config.get('bridge.log_level') == 'debug' then
    notify.info(text)
  else
    log.info('%s', text)
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
---@field refusal? string why the last `setup()` was refused
---@field versions table<string, string>
---@field sessions? { count: integer, calls: integer, clients: table[] }
---@field blocked? { mode: string, at: integer }
---@field note? string
---@field identity_file? string
---@field to_do? string what makes it run

---@param state mcp-tools.bridge.State
---@return string?
local function to_do(state)
  if state == 'failed' then
    return M.fault and M.fault.advice or 'See :McpTools log; :McpTools start tries again'
  end
  if state == 'stopped' and config.refusal() then
    return 'Correct these options, then start Neovim again; :checkhealth mcp-tools has a line for each'
  end
  return state == 'stopped' and ':McpTools start' or nil
end

--- Why `setup()` was refused, as one line.
---@return string?
local function refusal()
  local text = config.refusal()
  return text and table.concat(vim.split(text, '\n%s+'), ' ') or nil
end

--- Everything that health and `:McpTools status` show of the bridge, but never the token.
---@return mcp-tools.bridge.Status
function M.status()
  local supervisor, said, prepared = M.supervisor, M.said, M.prepared
  local endpoint, mine = M.endpoint() or {}, prepared and prepared.identity or {}
  local versions = said.hello.versions or {}
  return {
    state = supervisor.state,
    running = M.is_running(),
    attached = said.channel ~= nil,
    url = endpoint.url,
    port = endpoint.port,
    wanted_port = said.hello.wanted_port or mine.port,
    port_holder = said.hello.port_holder,
    root = mine.root,
    pid = supervisor.process and supervisor.process.pid,
    source = prepared and prepared.source,
    command = prepared and prepared.spec.command,
    python_version = versions.python or (prepared and prepared.version),
    fault = M.fault,
    tries = supervisor.tries,
    last_error = supervisor.last_error,
    refusal = refusal(),
    versions = versions,
    sessions = said.sessions,
    blocked = said.blocked,
    note = said.note,
    identity_file = mine.path,
    to_do = to_do(supervisor.state),
  }
end

return M
