--- The bridge of this editor as it is: its process, what it was started from, what it has said; port, token, endpoint.
---
--- Receives: what control.lua does to it and attachment.lua hears from it.
--- Sends: that to whoever asks.
--- Does not know about: how a bridge is started.

local launch = require('mcp-tools.bridge.launch')
local log = require('mcp-tools.log')

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

--- Where clients connect; nil until the bridge is ready.
---@return { url: string, token: string, port: integer }?
function M.endpoint()
  local port, prepared = M.get_port(), M.prepared
  return port and { url = launch.url(prepared.host, port), token = prepared.identity.token, port = port } or nil
end

return M
