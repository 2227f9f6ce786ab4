--- Checks terminal agents, assistants, and other plugins for them.

local config = require('mcp-tools.config')
local sanitize = require('mcp-tools.util.sanitize')

local health = vim.health

local M = {}

---@param agent mcp-tools.agents.Status
local function report(agent)
  local name = agent.label and ('%s (%s)'):format(agent.label, agent.name) or agent.name
  if agent.fault then
    health.error(('%s: %s'):format(name, agent.reason), 'Fix this, then run :McpTools restart')
  elseif agent.state == 'on' and #agent.files == 0 then
    health.info(('%s: its endpoint is open, but it has no discovery file'):format(name))
  elseif agent.state == 'on' then
    health.ok(('%s can find this editor: %s'):format(name, table.concat(agent.files, ', ')))
    if #agent.sessions == 0 and agent.connect then
      health.info(('%s is not connected: %s'):format(name, agent.connect))
    end
    if agent.proposes then
      health.info(('%s proposes edits %s'):format(name, agent.proposes))
    end
  else
    health.info(('%s: %s, %s'):format(name, agent.state, agent.reason or 'unknown reason'))
  end
  for _, session in ipairs(agent.sessions) do
    local tools = vim.tbl_keys(session.asked)
    table.sort(tools)
    local asked = #tools > 0 and ('; it has called ' .. table.concat(tools, ', ')) or ''
    health.info(sanitize.line(('connected: %s %s%s'):format(session.client, session.version, asked)))
  end
end

--- Checks which terminal agents can find this editor, which are connected, and why others cannot.
function M.terminal_agents()
  if not config.get('agents') then
    return health.info('none; the option `agents` names the agents that can find this editor')
  end
  for _, agent in ipairs(require('mcp-tools.agents').status()) do -- start-up cost: not loaded without the option
    report(agent)
  end
end

--- Returns whether a plugin with this Lua module is installed; it may be loaded later.
---@param module string
---@return boolean
local function is_installed(module)
  return package.loaded[module] ~= nil
    or #vim.api.nvim_get_runtime_file(('lua/%s.lua'):format(module), false) > 0
    or #vim.api.nvim_get_runtime_file(('lua/%s/init.lua'):format(module), false) > 0
end

--- Makes the check of an assistant that gets its tools from a file of `callers/`.
---@param host string
---@param label string
---@return fun()
local function assistant(host, label)
  return function()
    local callers = package.loaded['mcp-tools.callers.assistant'] -- not loaded: no assistant has asked for tools
    local count = callers and callers.counts[host]
    if count then
      return health.ok(('%s has %d of these tools'):format(label, count))
    end
    health.info(('%s is installed, but has not asked for these tools: `:h mcp-tools-%s`'):format(label, host))
  end
end

local function claudecode()
  local module = package.loaded['claudecode']
  local port = type(module) == 'table' and type(module.state) == 'table' and module.state.server and module.state.port
  if port then
    local text = 'claudecode.nvim is running (port %s): Claude Code connects to it; the agent `claude` is off meanwhile'
    return health.ok(text:format(port))
  end
  health.info('claudecode.nvim is installed but not running: Claude Code finds this editor if the agent `claude` is on')
end

---@type { [1]: string, [2]: string|fun() }[] module, and its check or what to know of it
local PLUGINS = {
  { 'codecompanion', assistant('codecompanion', 'CodeCompanion') },
  { 'avante', assistant('avante', 'Avante') },
  { 'mcphub', assistant('mcphub', 'MCP Hub') },
  { 'claudecode', claudecode },
  { 'opencode', 'opencode.nvim: its server gets these tools with `integrations = { opencode = true }`' },
  {
    'sidekick',
    'sidekick.nvim: its agents find this editor as from any terminal (option `agents`); its opencode server gets'
      .. ' these tools with `integrations = { opencode = true }`',
  },
}

---@param server mcp-tools.integration.Status
local function report_server(server)
  local name = sanitize.line(('%s at %s (%s)'):format(server.label, server.url, server.via))
  if server.state == 'connected' then
    health.ok(name .. ' has these tools')
  elseif server.state == 'others' then
    health.info(name .. ' already has a server of this name, from its own configuration or another editor')
  elseif server.fault then
    health.warn(
      sanitize.line(('%s: %s'):format(name, server.fault)),
      'It is retried for ten minutes, and after :McpTools restart; see :McpTools log'
    )
  else
    health.info(name .. ' gets these tools when the bridge is ready')
  end
end

--- Checks assistants, plugins for agents, and servers of agents.
function M.assistants()
  local has_any = false
  for _, plugin in ipairs(PLUGINS) do
    if is_installed(plugin[1]) then
      has_any = true
      local check = plugin[2]
      if type(check) == 'string' then
        health.info(check)
      else
        check()
      end
    end
  end
  local integrations = package.loaded['mcp-tools.agents.integrations']
  for _, server in ipairs(integrations and integrations.status() or {}) do
    has_any = true
    report_server(server)
  end
  if not has_any then
    health.info('no known assistant or plugin for agents is installed')
  end
end

return M
