--- Health of what works beside this plugin: assistants in the editor, plugins for agents, servers of agents.

local sanitize = require('mcp-tools.util.sanitize')

local health = vim.health

local M = {}

--- Is a plugin of that Lua module there? A manager may load it later.
---@param module string
---@return boolean
local function is_installed(module)
  return package.loaded[module] ~= nil
    or #vim.api.nvim_get_runtime_file(('lua/%s.lua'):format(module), false) > 0
    or #vim.api.nvim_get_runtime_file(('lua/%s/init.lua'):format(module), false) > 0
end

--- An assistant that gets the tools by a file of `hosts/`.
---@param host string
---@param label string
---@return fun()
local function assistant(host, label)
  return function()
    local hosts = package.loaded['mcp-tools.callers.assistant'] -- by name: what is not loaded has given nothing
    local count = hosts and hosts.given[host]
    if count then
      return health.ok(('%s has %d of these tools'):format(label, count))
    end
    health.info(('%s is installed and has not asked for these tools: `:h mcp-tools-%s`'):format(label, host))
  end
end

local function claudecode()
  local module = package.loaded['claudecode']
  local port = type(module) == 'table' and type(module.state) == 'table' and module.state.server and module.state.port
  if port then
    local text = 'claudecode.nvim runs (port %s): Claude Code finds it; the companion `claude` stays off meanwhile'
    return health.ok(text:format(port))
  end
  health.info('claudecode.nvim is installed and does not run: Claude Code finds the companion `claude`, where it is on')
end

local function opencode()
  health.info('opencode.nvim: a server that it connects to gets these tools with `integrations = { opencode = true }`')
end

local function sidekick()
  health.info(
    'sidekick.nvim: agents that it starts find this editor as from any terminal (companions); an opencode server that'
      .. ' it is attached to gets these tools with `integrations = { opencode = true }`'
  )
end

---@type { [1]: string, [2]: fun() }[] module, and what is said of it
local PLUGINS = {
  { 'codecompanion', assistant('codecompanion', 'CodeCompanion') },
  { 'avante', assistant('avante', 'Avante') },
  { 'mcphub', assistant('mcphub', 'MCP Hub') },
  { 'claudecode', claudecode },
  { 'opencode', opencode },
  { 'sidekick', sidekick },
}

---@param server mcp-tools.integration.Status
local function report(server)
  local name = sanitize.line(('%s at %s (%s)'):format(server.label, server.url, server.via))
  if server.state == 'connected' then
    health.ok(name .. ' has these tools')
  elseif server.state == 'others' then
    health.info(name .. ' has a server of this name already, by its own configuration or from another editor')
  elseif server.fault then
    health.warn(
      sanitize.line(('%s: %s'):format(name, server.fault)),
      'It is tried again for ten minutes, then after :McpTools restart; see :McpTools log'
    )
  else
    health.info(name .. ' gets these tools once the bridge is ready')
  end
end

function M.check()
  local said = false
  for _, plugin in ipairs(PLUGINS) do
    if is_installed(plugin[1]) then
      said = true
      plugin[2]()
    end
  end
  local integrations = package.loaded['mcp-tools.agents.integrations'] -- by name, as above
  for _, server in ipairs(integrations and integrations.status() or {}) do
    said = true
    report(server)
  end
  if not said then
    health.info('no assistant or plugin for agents is installed that this plugin knows')
  end
end

return M
