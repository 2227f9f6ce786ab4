--- Health of the companions: which agents can find this editor, who is there, and what keeps another away.

local sanitize = require('mcp-tools.util.sanitize')

local health = vim.health

local M = {}

---@param companion mcp-tools.agents.Status
local function report(companion)
  local name = companion.label and ('%s (%s)'):format(companion.label, companion.name) or companion.name
  if companion.fault then
    health.error(('%s: %s'):format(name, companion.reason), 'Mend that, then run :McpTools restart')
  elseif companion.state == 'on' and #companion.files == 0 then
    health.info(('%s: its endpoint is open, no file tells its agent so'):format(name))
  elseif companion.state == 'on' then
    health.ok(('%s can find this editor: %s'):format(name, table.concat(companion.files, ', ')))
    if #companion.sessions == 0 and companion.connect then
      health.info(('%s is not connected: %s'):format(name, companion.connect))
    end
    if companion.proposes then
      health.info(('%s proposes edits %s'):format(name, companion.proposes))
    end
  else
    health.info(('%s: %s, %s'):format(name, companion.state, companion.reason or 'no reason is known'))
  end
  for _, session in ipairs(companion.sessions) do
    local tools = vim.tbl_keys(session.asked)
    table.sort(tools)
    local asked = #tools > 0 and ('; it has asked for ' .. table.concat(tools, ', ')) or ''
    health.info(sanitize.line(('connected: %s %s%s'):format(session.client, session.version, asked)))
  end
end

function M.check()
  if not require('mcp-tools.config').get('companions') then -- by name: each section stands alone
    return health.info('none is on; the option companions names agents that find this editor by themselves')
  end
  for _, companion in ipairs(require('mcp-tools.agents').status()) do -- by name
    report(companion)
  end
end

return M
