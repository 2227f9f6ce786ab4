--- How an agent reaches this editor's bridge: the relay over stdio, and MCP server entries for the Agent Client
--- Protocol (`session/new`, `mcpServers`).

local current = require('mcp-tools.bridge.current')
local errors = require('mcp-tools.errors')
local project = require('mcp-tools.instances.project')

local M = {}

local NAME = 'nvim-tools'

--- Variables that locate the instance file, which has the token; agents do not pass on their whole environment.
local VARIABLES = { 'XDG_RUNTIME_DIR', 'XDG_STATE_HOME', 'NVIM_APPNAME' }

---@class mcp-tools.bridge.Relay
---@field command string
---@field args string[]
---@field env table<string, string>

--- Returns the command that relays MCP between its stdin and stdout and this editor's bridge. It runs isolated (`-I`)
--- because agents start it in the project's directory, and takes the token from this editor's instance file.
---@return mcp-tools.bridge.Relay? relay nil with `bridge.command`, which does not name a Python
function M.relay()
  local launch = current.launch
  if not launch or launch.source == 'command' then
    return nil
  end
  local env = vim.empty_dict() --[[@as table<string, string>]]
  for _, name in ipairs(VARIABLES) do
    env[name] = vim.env[name]
  end
  return {
    command = vim.fn.exepath(launch.spec.command[1]),
    args = { '-I', project.python_package(), 'stdio', '--instance', tostring(vim.uv.os_getpid()) },
    env = env,
  }
end

--- Returns the entry for a transport.
---@param transport string
---@return table? entry
---@return mcp-tools.Error? err
function M.entry(transport)
  local endpoint = current.endpoint()
  if transport ~= 'http' and transport ~= 'stdio' then
    local text = 'transport: must be "http" or "stdio", got "%s"'
    return nil, errors.new('validation_error', text:format(tostring(transport)))
  elseif not endpoint then
    return nil, errors.new('busy', 'the bridge is not ready; start it with start() or :McpTools start')
  elseif transport == 'http' then
    local headers = { { name = 'Authorization', value = 'Bearer ' .. endpoint.token } }
    return { type = 'http', name = NAME, url = endpoint.url, headers = headers }
  end
  local relay, env = M.relay(), {}
  if not relay then
    return nil, errors.new('validation_error', 'transport: must be "http" with the option bridge.command')
  end
  for name, value in vim.spairs(relay.env) do
    table.insert(env, { name = name, value = value })
  end
  return { name = NAME, command = relay.command, args = relay.args, env = env }
end

return M
