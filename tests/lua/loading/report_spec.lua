local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local report = require('mcp-tools.loading.report')
local notifications = require('notifications')
local t = require('helpers')

local function add(name)
  core.get().registry:add('tools', { name = name, description = name, execute = function() end })
end

local function health()
  vim.cmd('silent checkhealth mcp-tools')
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  vim.cmd('bwipeout!')
  return text
end

describe('names in the options', function()
  before_each(function()
    config.reset()
    notifications.collect()
    add('deploy')
  end)

  after_each(function()
    notifications.restore()
    config.reset()
  end)

  it('that nothing has are known, with the nearest', function()
    config.setup({
      approval = {
        tools = { deploy = 'deny', deplyo = 'deny', nvim_deploy = 'deny', buffer_read = 'ask', something = 'ask' },
        groups = { buffer = 'allow', bufer = 'deny' },
      },
    })
    t.eq({
      { option = 'approval.groups', name = 'bufer', near = 'buffer' },
      { option = 'approval.tools', name = 'deplyo', near = 'deploy' },
      { option = 'approval.tools', name = 'nvim_deploy', near = 'deploy' },
      { option = 'approval.tools', name = 'something' },
    }, report.unknown_names(core.get().registry))
  end)

  it('are named by health and, when a client has come, once by a message', function()
    config.setup({ tools = { 'bufer' }, approval = { tools = { deplyo = 'deny', something = 'ask' } } })
    core.get() -- so that nothing is left to load
    for _ = 1, 2 do
      require('mcp-tools.rpc').list('tools')
      notifications.wait("did you mean 'deploy'? approval.tools: unknown name 'deplyo'")
      notifications.wait("did you mean 'buffer'? tools: unknown name 'bufer'")
    end
    local text = notifications.text()
    t.eq(2, select(2, text:gsub('unknown name', '')))
    t.ok(not text:find('something', 1, true), text)
    text = health()
    t.matches("did you mean 'deploy'%? approval.tools: unknown name 'deplyo'", text)
    t.matches("unknown name 'something'\n", text)
    t.matches("did you mean 'buffer'%? tools: unknown name 'bufer'", text)
  end)
end)
