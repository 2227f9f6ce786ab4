--- The bridge as agents of the Agent Client Protocol are told of it (`session/new`, `mcpServers`).
---
--- Receives: the transport that is wanted. Sends: an entry, or why there is none.
--- Does not know about: agents, who starts them.

local current = require('mcp-tools.bridge.current')
local errors = require('mcp-tools.errors')
local project = require('mcp-tools.files.project')

local M = {}

local NAME = 'nvim-tools'

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

--- A process that relays to the bridge, by the same Python.
---@param endpoint { url: string, token: string }
---@return table
local function stdio(endpoint)
  local spec = current.prepared.spec
  return {
    name = NAME,
    command = vim.fn.exepath(spec.command[1]),
    args = { '-m', 'bridge.stdio' },
    env = {
      { name = 'MCP_TOOLS_URL', value = endpoint.url },
      { name = 'MCP_TOOLS_TOKEN', value = endpoint.token },
      { name = 'PYTHONPATH', value = project.plugin_dir() },
    },
  }
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
  elseif transport == 'stdio' and current.prepared.source == 'command' then
    local text = 'transport: with the option bridge.command only "http" is known'
    return nil, errors.new('validation_error', text)
  end
  return make(endpoint)
end

return M
