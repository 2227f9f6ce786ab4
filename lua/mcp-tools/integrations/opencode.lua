-- OpenCode servers that run: `opencode serve`, or a terminal with `--port`. Seen with 1.18.33.
--
-- Which server: the one that the option names, the one that opencode.nvim is connected to, those that sidekick.nvim is
-- attached to. Other ports are never tried: a token goes to no server that the user has not chosen.

---@param user string?
---@param password string?
---@return table<string, string>?
local function basic(user, password)
  if not password or password == '' then
    return nil
  end
  return { Authorization = 'Basic ' .. vim.base64.encode((user or 'opencode') .. ':' .. password) }
end

--- A module of another plugin, if that is loaded.
---@param name string
---@return table?
local function loaded(name)
  local module = package.loaded[name]
  return type(module) == 'table' and module or nil
end

---@param list mcp-tools.integration.Server[]
---@param url any
---@param via string
---@param headers? table<string, string>
local function add(list, url, via, headers)
  url = type(url) == 'string' and (url:match('^.*[^/]') or '') or ''
  local known = vim.iter(list):any(function(server)
    return server.url == url
  end)
  if url ~= '' and not known then
    table.insert(list, { url = url, via = via, headers = headers })
  end
end

---@type mcp-tools.Integration
return {
  name = 'opencode',
  label = 'OpenCode',
  events = { 'OpencodeEvent:server.connected', 'SidekickCliAttach' },

  servers = function(options)
    local list = {}
    local password = options.password_env and vim.env[options.password_env]
    for _, url in ipairs(type(options.url) == 'table' and options.url or { options.url }) do
      add(list, url, 'the option', basic(options.username, password))
    end
    local server = loaded('opencode.server')
    local connected = server and server.connected
    if type(connected) == 'table' then
      local config = loaded('opencode.config')
      local theirs = config and config.opts and config.opts.server or {}
      add(list, connected.url, 'opencode.nvim', basic(theirs.username, theirs.password))
    end
    local sessions = loaded('sidekick.cli.session')
    for _, session in pairs(sessions and sessions.attached and sessions.attached() or {}) do
      add(list, session.base_url, 'sidekick.nvim', basic(options.username, password))
    end
    return list
  end,
}
