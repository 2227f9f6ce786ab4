-- Codex, in a terminal only: its channel to editors is private and unstable.

local json = require('mcp-tools.util.json')

local TOKEN = 'MCP_TOOLS_NVIM_TOKEN'

--- Encodes a value as TOML. Strings are the same as in JSON.
---@param value string|string[]|table<string, string>
---@return string
local function toml(value)
  if type(value) ~= 'table' then
    return (assert(json.encode(value)))
  elseif vim.islist(value) then
    return ('[%s]'):format(table.concat(vim.tbl_map(toml, value), ','))
  end
  local entries = {}
  for name, item in vim.spairs(value) do
    table.insert(entries, ('%s=%s'):format(toml(name), toml(item)))
  end
  return ('{%s}'):format(table.concat(entries, ','))
end

---@type mcp-tools.Agent
return {
  name = 'codex',
  label = 'Codex',

  environment = function(endpoint)
    local server, env = endpoint.server, nil
    local options = server.relay --[[@as table?]]
    if not options then
      env = { [TOKEN] = server.token } -- the only other place for a token is the command line
      options = { url = server.url, bearer_token_env_var = TOKEN }
    end
    local args = {}
    for name, value in vim.spairs(options) do
      vim.list_extend(args, { '-c', ('mcp_servers.%s.%s=%s'):format(server.name, name, toml(value)) })
    end
    return { command = { 'codex' }, env = env, args = args }
  end,
}
