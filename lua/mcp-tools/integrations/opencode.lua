-- OpenCode servers that run: `opencode serve`, or a terminal with `--port`. Seen with 1.18.33.
--
-- `POST /mcp` gives a server another MCP server for as long as it runs; `POST /mcp/NAME/disconnect` ends that. Which
-- server: the one that the option names, the one that opencode.nvim is connected to, those that sidekick.nvim is
-- attached to. Nobody looks for others: a token goes to no server that its person has not chosen.

local http = require('mcp-tools.util.http')
local json = require('mcp-tools.util.json')

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

---@param server mcp-tools.integration.Server
---@param path string
---@param body? table
---@return mcp-tools.http.Request
local function request(server, path, body)
  local headers = vim.tbl_extend('force', { ['Content-Type'] = 'application/json' }, server.headers or {})
  return {
    url = server.url .. path,
    method = body and 'POST' or 'GET',
    headers = headers,
    body = body and assert(json.encode(next(body) and body or vim.empty_dict())) or nil,
    timeout = body and 15000 or nil, -- it connects to ours before it answers
  }
end

---@param answer mcp-tools.http.Answer?
---@param fault string?
---@return table? value
---@return string? fault
local function value_of(answer, fault)
  if not answer then
    return nil, fault
  elseif answer.status == 401 then
    return nil, 'it wants a password (OPENCODE_SERVER_PASSWORD): name its variable by `password_env`'
  elseif answer.status ~= 200 then
    return nil, ('it answers with status %d'):format(answer.status)
  end
  local ok, value = pcall(vim.json.decode, answer.body)
  if not ok or type(value) ~= 'table' then
    return nil, 'its answer is none of OpenCode'
  end
  return value
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

  state = function(server, name, cb)
    http.request(request(server, '/mcp'), function(answer, fault)
      local value, why = value_of(answer, fault)
      local entry = value and value[name]
      cb(value and (type(entry) == 'table' and entry.status or 'none') or nil, why)
    end)
  end,

  add = function(server, ours, cb)
    local config = {
      type = 'remote',
      url = ours.url,
      enabled = true,
      oauth = false,
      headers = { Authorization = 'Bearer ' .. ours.token },
    }
    http.request(request(server, '/mcp', { name = ours.name, config = config }), function(answer, fault)
      local value, why = value_of(answer, fault)
      local entry = value and value[ours.name]
      local status = type(entry) == 'table' and entry.status or nil
      if status == 'connected' then
        return cb()
      end
      cb(why or ('it could not connect: %s'):format(entry and entry.error or status or 'it does not say why'))
    end)
  end,

  removal = function(server, name)
    return request(server, ('/mcp/%s/disconnect'):format(name), {})
  end,
}
