-- opencode, in a terminal. For its discovery it uses the file of Claude Code: enable `claude` for it.

local json = require('mcp-tools.util.json')

---@type mcp-tools.Agent
return {
  name = 'opencode',
  label = 'opencode',

  environment = function(endpoint)
    local server = endpoint.server
    local entry = {
      type = 'remote',
      url = server.url,
      enabled = true,
      oauth = false,
      headers = { Authorization = 'Bearer ' .. server.token },
    }
    local relay = server.relay
    if relay then
      local command = vim.list_extend({ relay.command }, relay.args)
      entry = { type = 'local', command = command, environment = relay.env, enabled = true }
    end
    local config = { mcp = { [server.name] = entry } }
    return { command = { 'opencode' }, env = { OPENCODE_CONFIG_CONTENT = (assert(json.encode(config))) } }
  end,
}
