local bundled = require('mcp-tools.loading.bundled')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local notifications = require('notifications')
local report = require('mcp-tools.loading.report')
local t = require('helpers')
local tools = require('mcp-tools')

local function keys(kind) return t.field('key', core.get().registry:list(kind)) end

after_each(function()
  config.reset()
  core.get()
end)

describe('bundled resources and prompts', function()
  it('are all enabled by default', function()
    t.eq({
      'nvim://buffers',
      'nvim://cursor',
      'nvim://diagnostics',
      'nvim://discovery',
      'nvim://messages',
      'nvim://modules',
      'nvim://quickfix',
      'nvim://selection',
      'nvim://status',
    }, keys('resources'))
    t.eq({ 'file:///{+path}', 'nvim://buffer/{+path}', 'nvim://diagnostics/{+path}' }, keys('templates'))
    t.eq({ 10, {} }, { #keys('prompts'), require('mcp-tools').report().failures })
  end)

  it('are named like their files, described, and do nothing when they are loaded', function()
    for _, kind in ipairs({ 'resources', 'prompts' }) do
      for _, file in ipairs(bundled.files(kind)) do
        t.eq(file.name, require(file.module).name)
      end
    end
    for _, kind in ipairs({ 'resources', 'templates', 'prompts' }) do
      for _, entry in ipairs(core.get().registry:list(kind)) do
        t.eq({}, entry.lint)
        t.ok(entry.title and entry.description, entry.key)
        t.eq('bundled', entry.source.origin)
        for _, arg in ipairs(kind == 'prompts' and entry.args or {}) do
          t.ok(arg.description, entry.name .. ' ' .. arg.name)
        end
      end
    end
  end)

  it('follow the options', function()
    tools.setup({ resources = { 'cursor', 'file' }, prompts = false })
    t.eq({ { 'nvim://cursor' }, { 'file:///{+path}' }, {} }, { keys('resources'), keys('templates'), keys('prompts') })
    tools.setup({ resources = false, prompts = { 'verify_setup' } })
    t.eq({ {}, {}, { 'verify_setup' } }, { keys('resources'), keys('templates'), keys('prompts') })
    tools.setup({ resources = true, prompts = true })
    t.eq({ 9, 3, 10 }, { #keys('resources'), #keys('templates'), #keys('prompts') })
    t.raises('resources: expected a boolean, a list', function() tools.setup({ resources = 'all' }) end)
  end)

  it('do not replace those that others have registered', function()
    tools.setup({ resources = false })
    core.get()
    tools.register_resource({ uri = 'nvim://cursor', name = 'mine', read = function() end })
    tools.setup({ resources = true })
    t.eq('mine', core.get().registry.entries.resources['nvim://cursor'].name)
    tools.setup({ resources = false })
    t.eq({ 'nvim://cursor' }, keys('resources'))
    tools.unregister_resource('nvim://cursor')
    t.eq({}, keys('resources'))
  end)
end)

describe('the public API', function()
  it('raises all faults at the caller, and reports them', function()
    local function register() tools.register_resource({ uri = 'x://y' }) end
    local err = t.raises('bundled_spec.lua.*resource .x://y.: name: is required\nresource', register)
    t.matches('read: is required', err)
    t.eq("resource 'x://y'", require('mcp-tools').report().failures[1].source)
    t.raises("prompt 'p': description: is required", function() tools.register_prompt({ name = 'p' }) end)
    tools.register_resource({ uri = 'x://y', name = 'y', read = function() end })
    tools.register_prompt({ name = 'p', description = 'x', get = function() end })
    t.eq({}, require('mcp-tools').report().failures)
    tools.unregister_resource('x://y')
    tools.unregister_prompt('p')
    tools.unregister_prompt('p')
    t.eq(nil, core.get().registry.entries.prompts.p)
  end)

  it('can notify of changes before anyone listens', function()
    tools.notify_resource('x://nobody')
    t.raises('uri: expected string', function() tools.notify_resource(nil) end)
  end)
end)

describe('loading what is bundled', function()
  local wire = require('mcp-tools.rpc')

  --- Bundled tools whose module is loaded.
  local function loaded()
    return vim.tbl_filter(function(file) return package.loaded[file.module] ~= nil end, bundled.files('tools'))
  end

  before_each(function()
    core.get()
    for _, file in ipairs(bundled.files('tools')) do
      package.loaded[file.module] = nil
    end
  end)

  it('of a called tool comes before all others', function()
    tools.setup({ tools = 'all' })
    local result
    tools.call('test_echo', { text = 'early' }, function(value) result = value end)
    t.eq({ 'early', { 'test_echo' } }, { result, (t.field('name', loaded())) })
  end)

  it('that began with other options ends with the last ones', function()
    tools.setup({ tools = 'all' })
    wire.list('tools')
    tools.setup({ tools = { 'test_echo' } })
    wire.list('tools')
    t.wait(function() return not wire.list('tools').loading end)
    t.eq({ 'test_echo' }, t.field('name', core.get().registry:list('tools')))
  end)
end)

it('an explicit tool is enabled by its own name only', function()
  local name, group = 'editor_command', 'editor'
  local function enabled(option)
    config.reset()
    tools.setup({ tools = option })
    return core.get().registry:get(name) ~= nil
  end
  t.eq({ false, false }, { enabled('all'), enabled({ group }) })
  t.eq({ true, true }, { enabled({ name }), enabled({ 'all', name }) })
end)

it('a definition in the options that throws when it is read is reported, and the others are loaded', function()
  local unreadable = setmetatable({}, { __index = function(_, key) error('no ' .. tostring(key)) end })
  local broken = { name = 'broken', description = 'x', args = unreadable, execute = function() end }
  local fine = { name = 'fine', description = 'x', execute = function() end }
  tools.setup({ tools = { broken, fine } })
  t.ok(core.get().registry:get('fine'))
  t.matches('setup{tools}%[%d%]', vim.inspect(tools.report().failures))
  t.ok(not require('mcp-tools.loading.bundled').is_pending())
end)

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
  notifications.each()
  before_each(function()
    config.reset()
    add('deploy')
  end)

  after_each(function() config.reset() end)

  it('that are unknown are reported with the nearest name', function()
    config.setup({
      approval = {
        tools = { deploy = 'deny', deplyo = 'deny', nvim_deploy = 'deny', file_read = 'ask', something = 'ask' },
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

  it('are reported by health and, when a client has connected, once by a message', function()
    config.setup({ tools = { 'bufer' }, approval = { tools = { deplyo = 'deny', something = 'ask' } } })
    core.get() -- so that nothing is left to load
    for _ = 1, 2 do
      require('mcp-tools.rpc').list('tools')
      notifications.wait("approval.tools: unknown name 'deplyo' (did you mean 'deploy'?)")
      notifications.wait("tools: unknown name 'bufer' (did you mean 'buffer'?)")
    end
    local text = notifications.text()
    t.eq(2, select(2, text:gsub('unknown name', '')))
    t.ok(not text:find('something', 1, true), text)
    text = health()
    t.matches("approval.tools: unknown name 'deplyo' %(did you mean 'deploy'%?%)", text)
    t.matches("unknown name 'something'\n", text)
    t.matches("tools: unknown name 'bufer' %(did you mean 'buffer'%?%)", text)
  end)
end)
