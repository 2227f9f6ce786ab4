--- Status of the bridge: everything that health and `:McpTools status` show of it. Never the token.
---
--- Receives: the bridge as it is (current.lua).
--- Sends: one table, made anew each time.
--- Does not know about: how it is shown.

local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')

local M = {}

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
    return current.fault and current.fault.advice or 'See :McpTools log; :McpTools start tries again'
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

---@return mcp-tools.bridge.Status
function M.status()
  local supervisor, said, prepared = current.supervisor, current.said, current.prepared
  local endpoint, mine = current.endpoint() or {}, prepared and prepared.identity or {}
  local versions = said.hello.versions or {}
  return {
    state = supervisor.state,
    running = current.is_running(),
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
    fault = current.fault,
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
