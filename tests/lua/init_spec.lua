-- every Neovim
local calls = require('tool_calls')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('editor_project')
local t = require('helpers')
local tools = require('mcp-tools')

local function tool(name)
  return { name = name, description = 'x', execute = function() end }
end

it('status() loads nothing, and counts once the parts are in use', function()
  t.eq(nil, tools.status().offered)
  t.ok(not core.in_use())
  tools.register(tool('counted'))
  config.change({ tools = false })
  t.ok(not core.in_use())
  core.get()
  local status = tools.status()
  t.eq({ 1, 0, 'stopped' }, { status.offered.tools, status.calls, status.state })
  t.ok(status.offered.resources >= 0 and status.offered.templates >= 0 and status.offered.prompts >= 0)
  t.matches('^%d+%.%d+%.%d+$', status.version)
  tools.unregister('counted')
end)

describe('report()', function()
  after_each(function()
    config.reset()
    core.get()
    core.get().registry:clear('tools')
  end)

  it('tells where each thing comes from, and what could not be loaded', function()
    tools.setup({ tools = { 'test_echo', 'no_such' }, tool_prefix = 'p_' })
    tools.register(tool('own'))
    local report = tools.report()
    local echo, own = report.tools[2], report.tools[1]
    t.eq({ 'own', 'registered' }, { own.name, own.origin })
    t.eq({ 'test_echo', 'bundled', 'test' }, { echo.name, echo.origin, echo.group })
    t.matches("unknown name 'no_such'", report.failures[1].error)
    t.eq({ 'p_', false }, { report.tool_prefix, report.no_bundled_tools })
    t.eq({ 'ext', 'python' }, { report.sources[1].name, report.sources[2].name })
  end)

  it('says when the options ask for no bundled tools', function()
    config.change({ tools = false })
    t.eq(true, tools.report().no_bundled_tools)
  end)
end)

it('on_change() tells of each change until it is stopped, and who throws disturbs nobody', function()
  local count = 0
  local stop_bad = tools.on_change(function() error('on purpose') end)
  local stop = tools.on_change(function() count = count + 1 end)
  tools.register(tool('one'))
  t.eq(1, count)
  local looked
  tools.refresh('ext', function() looked = true end)
  t.wait(function() return looked end)
  t.eq(2, count)
  stop()
  stop_bad()
  tools.unregister('one')
  t.eq(2, count)
end)

it('the tool bridge_refresh offers every source that there is', function()
  local definition = require('mcp-tools.tools.bridge.refresh')
  t.eq(require('mcp-tools.loading').SOURCES, definition.args.source.enum)
end)

describe('bridge_status', function()
  before_each(function()
    project.open()
    calls.offer({ 'bridge', 'test' })
  end)

  after_each(project.close)

  it('tells what is offered, by groups, and what is wrong', function()
    local status = calls.call('bridge_status')
    t.eq(
      { 'the bridge is stopped', ':McpTools start', 'stopped' },
      { status.health, status.to_do, status.bridge.state }
    )
    t.eq({ bridge = 2, test = 5 }, status.tools)
    t.eq({ 'nvim', false }, { status.you.host, status.you.session })
    t.eq({ project.root, 1, 0 }, { status.cwd, status.calls, status.failures_total })
    t.matches('^%d+%.%d+%.%d+', status.versions.neovim)
    local text = require('mcp-tools.tools.bridge.status').render(status)
    t.matches('^the bridge is stopped; to do: :McpTools start\n.*\ntools: bridge 2, test 5', text)
    t.ok(not vim.inspect(status):lower():find('token', 1, true))
  end)

  it('names what could not be loaded', function()
    local ok = pcall(require('mcp-tools').register, { name = 'broken' })
    t.eq(false, ok)
    local status = calls.call('bridge_status')
    t.eq(status.failures_total, #(status.failures or {}))
  end)
end)
