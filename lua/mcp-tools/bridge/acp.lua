--- The bridge as agents of the Agent Client Protocol are told of it (`session/new`, `mcpServers`).
---
--- Receives: the transport that is wanted. Sends: an entry, or why there is none.
--- Does not know about: agents, who starts them.

local current = require('mcp-tools.bridge.current')
local errors = require('mcp-tools.errors')

local M = {}

--- The entry.
---@param transport string
---@return table? entry
---@return mcp-tools.Error? err
function M.entry(transport)
  local endpoint = current.endpoint()
  if transport ~= 'http' then
    return nil, errors.new('validation_error', ('transport: must be "http", got "%s"'):format(tostring(transport)))
  elseif not endpoint then
    return nil, errors.new('busy', 'the bridge is not ready; start() or :McpTools start starts it')
  end
  return {
    type = 'http',
    name = 'nvim-tools',
    url = endpoint.url,
    headers = { { name = 'Authorization', value = 'Bearer ' .. endpoint.token } },
  }
end

return M
