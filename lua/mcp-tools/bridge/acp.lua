--- Ways for an agent to reach this editor's bridge: the relay over stdio, and entries for the Agent Client Protocol
--- (`session/new`, `mcpServers`).

local current = require('mcp-tools.bridge.current')
local errors = require('mcp-tools.errors')
local project = require('mcp-tools.instances.project')

local M = {}

local NAME = 'nvim-tools'

--- Variables by which the relay finds the instance file, which has the token; agents do not hand down all of theirs.
local PLACES = { 'XDG_RUNTIME_DIR', 'XDG_STATE_HOME', 'NVIM_APPNAME' }

---@class mcp-tools.bridge.Relay
---@field command string
---@field args string[]
---@field env table<string, string>

--- A program that relays MCP on its stdin and stdout to this editor's bridge. It runs isolated (`-I`), since agents
--- start it in the project's directory, and takes the token from the instance file of this editor.
---@return mcp-tools.bridge.Relay? relay nil with `bridge.command`, where no Python is known
function M.relay()
  local prepared = current.prepared
  if not prepared or prepared.source == 'command' then
    return nil
  end
  local env = vim.empty_dict() --[[@as table<string, string>]]
  for _, name in ipairs(PLACES) do
    env[name] = vim.env[name]
  end
  return {
    command = vim.fn.exepath(prepared.spec.command[1]),
    args = { '-I', project.python_package(), 'stdio', '--instance', tostring(vim.uv.os_getpid()) },
    env = env,
  }
end

---@param endpoint { url: string, token: string }
---@return table
local function http(endpoint)
  return {
    type = 'http',
    name = NAME,
    url = endpoint.url,
    headers = { { name = 'Authorization', value = 'Bearer ' .. endpoint.token } },
  }
end

---@return table?
local function stdio()
  local relay = M.relay()
  if not relay then
    return nil
  end
  local env = {}
  for _, name in ipairs(PLACES) do
    table.insert(env, relay.env[name] and { name = name, value = relay.env[name] })
  end
  return { name = NAME, command = relay.command, args = relay.args, env = env }
end

local ENTRIES = { http = http, stdio = stdio }

--- The entry.
---@param transport string
---@return table? entry
---@return mcp-tools.Error? err
function M.entry(transport)
  local endpoint, make = current.endpoint(), ENTRIES[transport]
  if not make then
    local text = 'transport: must be "http" or "stdio", got "%s"'
    return nil, errors.new('validation_error', text:format(tostring(transport)))
  elseif not endpoint then
    return nil, errors.new('busy', 'the bridge is not ready; start() or :McpTools start starts it')
  end
  local entry = make(endpoint)
  if not entry then
    local text = 'transport: with the option bridge.command only "http" is known'
    return nil, errors.new('validation_error', text)
  end
  return entry
end

return M
