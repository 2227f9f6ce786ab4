local calls = require('tool_calls')
local project = require('editor_project')
local t = require('helpers')

before_each(function()
  project.open()
  calls.offer({ 'bridge', 'test' })
end)

after_each(project.close)

describe('bridge_status', function()
  it('tells what is offered, by groups, and what is wrong', function()
    local status = calls.call('bridge_status')
    t.eq(
      { 'the bridge is stopped', ':McpTools start', 'stopped' },
      { status.health, status.to_do, status.bridge.state }
    )
    t.eq({ bridge = 2, test = 4 }, status.tools)
    t.eq({ 'nvim', false }, { status.you.host, status.you.session })
    t.eq({ project.root, 1, 0 }, { status.cwd, status.calls, status.failures_total })
    t.matches('^%d+%.%d+%.%d+', status.versions.neovim)
    t.ok(not vim.inspect(status):lower():find('token', 1, true))
  end)

  it('names what could not be loaded', function()
    local ok = pcall(require('mcp-tools').register, { name = 'broken' })
    t.eq(false, ok)
    local status = calls.call('bridge_status')
    t.eq(status.failures_total, #(status.failures or {}))
  end)
end)
