-- Amp, in a terminal only: it finds editors by its own plugin.

---@type mcp-tools.Agent
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
