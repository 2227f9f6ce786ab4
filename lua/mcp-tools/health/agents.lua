--- Checks the terminal agents: which can find this editor, which are connected, and why others cannot.

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

function M.check()
  if not require('mcp-tools.config').get('agents') then -- by name: each section loads its own modules
    return health.info('none; the option `agents` names the agents that can find this editor')
  end
  for _, agent in ipairs(require('mcp-tools.agents').status()) do -- by name
    report(agent)
  end
end

return M
