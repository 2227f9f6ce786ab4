-- Codex. Its own channel to editors is private and changes; left out on purpose. Here is what its terminal needs.

local TOKEN = 'MCP_TOOLS_NVIM_TOKEN'

---@type mcp-tools.Companion
return {
  name = 'codex',
  label = 'Codex',

  environment = function(endpoint)
    local server = endpoint.server
    local key = 'mcp_servers.' .. server.name
    return {
      command = { 'codex' },
      env = { [TOKEN] = server.token },
      args = {
        '-c',
        ('%s.url="%s"'):format(key, server.url),
        '-c',
        ('%s.bearer_token_env_var="%s"'):format(key, TOKEN),
      },
    }
  end,
}
