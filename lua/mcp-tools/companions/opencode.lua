-- opencode. It finds the editor by the file of Claude Code (name "claude" for that); here is what its terminal needs.

local json = require('mcp-tools.util.json')

---@type mcp-tools.Companion
return {
  name = 'opencode',
  label = 'opencode',

  environment = function(endpoint)
    local server = endpoint.server
    local config = {
      mcp = {
        [server.name] = {
          type = 'remote',
          url = server.url,
          enabled = true,
          oauth = false,
          headers = { Authorization = 'Bearer ' .. server.token },
        },
      },
    }
    return { command = { 'opencode' }, env = { OPENCODE_CONFIG_CONTENT = (assert(json.encode(config))) } }
  end,
}
