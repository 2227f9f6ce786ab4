local bundled = require('mcp-tools.discovery.bundled')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local tools = require('mcp-tools')
local t = require('helpers')

local function keys(kind)
  return vim.tbl_map(function(entry)
    return entry.key
  end, core.get().registry:list(kind))
end

after_each(function()
  config.reset()
  core.get()
end)

describe('bundled resources and prompts', function()
  it('are all on without being named', function()
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
    t.eq(10, #keys('prompts'))
    t.eq({}, require('mcp-tools').report().failures)
  end)

  it('are named as their files, described, and do nothing when they are loaded', function()
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
    t.raises('resources: expected boolean or list', function()
      tools.setup({ resources = 'all' })
    end)
  end)

  it('are named when there are none of that name', function()
    tools.setup({ resources = { 'cursors' } })
    core.get()
    t.eq(
      { source = 'setup{resources}', error = "there is none named 'cursors'; did you mean 'cursor'?" },
      require('mcp-tools').report().failures[1]
    )
  end)

  it('leave alone what others have registered', function()
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
  it('raises every fault at the caller, and keeps them for health', function()
    local err = t.raises('bundled_spec.lua.*resource .x://y.: name: is required\nresource', function()
      tools.register_resource({ uri = 'x://y' })
    end)
    t.matches('read: is required', err)
    t.eq("resource 'x://y'", require('mcp-tools').report().failures[1].source)
    t.raises("prompt 'p': description: is required", function()
      tools.register_prompt({ name = 'p' })
    end)
    tools.register_resource({ uri = 'x://y', name = 'y', read = function() end })
    tools.register_prompt({ name = 'p', description = 'x', get = function() end })
    t.eq({}, require('mcp-tools').report().failures)
    tools.unregister_resource('x://y')
    tools.unregister_prompt('p')
    tools.unregister_prompt('p')
    t.eq(nil, core.get().registry.entries.prompts.p)
  end)

  it('counts revisions of each kind', function()
    local revisions = vim.deepcopy(core.get().registry.revisions)
    tools.register_resource({ uri_template = 'x://{y}', name = 'y', read = function() end })
    tools.register_prompt({ name = 'p', description = 'x', get = function() end })
    tools.unregister_resource('x://{y}')
    tools.unregister_prompt('p')
    t.eq({
      tools = revisions.tools,
      resources = revisions.resources,
      templates = revisions.templates + 2,
      prompts = revisions.prompts + 2,
    }, core.get().registry.revisions)
  end)

  it('may tell of changes before anyone can listen', function()
    tools.notify_resource('x://nobody')
    t.raises('uri: expected string', function()
      tools.notify_resource(nil)
    end)
  end)
end)
