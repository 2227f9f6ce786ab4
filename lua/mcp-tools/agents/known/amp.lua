-- Amp. It finds editors by a plugin of its own; here is what its terminal needs.

---@type mcp-tools.Companion
return {
  name = 'amp',
  label = 'Amp',

  environment = function(endpoint)
    local server = endpoint.server
    local config = {
      [server.name] = { url = server.url, headers = { Authorization = 'Bearer ' .. server.token } },
    }
    return { command = { 'amp' }, args = { '--ide', '--mcp-config', endpoint.file(config) } }
  end,
}
