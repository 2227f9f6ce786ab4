local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local notifications = require('notifications')
local tools = require('mcp-tools')
local t = require('helpers')

--- Names of the tools of a group, from its directory.
local BUFFER = vim
  .iter(vim.api.nvim_get_runtime_file('lua/mcp-tools/tools/buffer/*.lua', true))
  :map(function(path) return 'buffer_' .. vim.fn.fnamemodify(path, ':t:r') end)
  :totable()
table.sort(BUFFER)

local function registry() return core.get().registry end

local function names(kind) return t.field('name', registry():list(kind or 'tools')) end

local function register(name, more)
  local base = { name = name, description = 'x', annotations = { read_only = true }, execute = function() end }
  tools.register(vim.tbl_extend('force', base, more or {}))
end

--- Replaces a bundled module; a reload gets it by `require`.
local function instead(module, loader)
  package.loaded[module] = nil
  package.preload[module] = loader
end

after_each(function()
  for module in pairs(package.preload) do
    if vim.startswith(module, 'mcp-tools.') then
      instead(module, nil)
    end
  end
  registry():clear('tools')
  config.reset()
  core.get()
end)

before_each(function() config.change({ tools = false }) end)

describe('enable and disable', function()
  it('before setup() do not count as setup(): nothing starts automatically', function()
    config.reset()
    t.eq({ { 'test_echo' }, false }, { (tools.enable('test_echo')), (config.is_setup()) })
    t.matches('setup%(%) was not called', require('mcp-tools.bridge').blocker())
    tools.disable('test')
    t.eq(false, config.is_setup())
    config.setup()
    t.eq(true, config.is_setup())
  end)

  it('switch groups and single tools; the last call wins', function()
    tools.setup({ tools = { 'test' } })
    t.eq({ 'test_async_prompt', 'test_echo', 'test_progress', 'test_run', 'test_sync_buffers' }, names())
    t.eq({ 'test_echo' }, tools.disable('test_echo'))
    t.eq({ 'test_async_prompt', 'test_progress', 'test_run', 'test_sync_buffers' }, names())
    t.eq({ BUFFER, 4 + #BUFFER }, { tools.enable('buffer'), (#names()) })
    t.eq({ 5, BUFFER }, { #tools.disable('test'), (names()) })
    t.eq({ 'test_progress' }, tools.enable('test_progress'))
    t.eq(vim.list_extend(vim.list_slice(BUFFER), { 'test_progress' }), names())
    t.eq({ 5, 5 + #BUFFER }, { #tools.enable('test'), (#names()) })
    t.eq({ { 'buffer_list' }, 4 + #BUFFER }, { tools.disable('nvim_buffer_list'), (#names()) })
    t.eq({}, require('mcp-tools').report().failures)
  end)

  it('work without an option for tools, and on "all"', function()
    t.eq({ { 'test_echo' }, { 'test_echo' } }, { tools.enable('test_echo'), (names()) })
    tools.setup({ tools = 'all' })
    local count = #names()
    tools.disable('buffer')
    t.eq(count - #BUFFER, #names())
  end)

  it('hide what a plugin has registered without removing it', function()
    register('mine')
    register('other')
    t.eq({ { 'mine' }, { 'other' } }, { tools.disable('mine'), (names()) })
    t.eq(nil, registry():find_tool('nvim_mine'))
    register('mine', { title = 'again' })
    t.eq({ { 'other' }, { 'mine' } }, { names(), (tools.enable('mine')) })
    t.eq('again', registry():get('mine').title)
    t.eq({ { 'mine', 'other' }, {} }, { tools.disable('registered'), (names()) })
    tools.unregister('mine')
    t.eq({ { 'other' }, { 'other' } }, { tools.enable('registered'), (names()) })
  end)

  it('are equivalent to the options', function()
    register('mine')
    tools.setup({ tools = { mine = false } })
    t.eq({}, names())
    tools.setup({ tools = { mine = true } })
    t.eq({ { 'mine' }, {} }, { names(), require('mcp-tools').report().failures })
    tools.disable('mine')
    t.eq({ false, mine = false }, config.get('tools'))
  end)

  it('apply to resources and prompts', function()
    tools.register_prompt({ name = 'p', description = 'x', get = function() end })
    t.eq({ 'p' }, tools.disable('prompts/p'))
    t.eq({ { 'verify_setup' }, 9 }, { tools.disable('prompts/verify_setup'), (#names('prompts')) })
    t.eq({ 'file' }, tools.disable('resources/file'))
    t.eq({ 9, 2, 12 }, { #names('resources'), #names('templates'), (#tools.disable('resources')) })
    t.eq({ 0, 0 }, { #names('resources'), #names('templates') })
    t.eq({ { 'cursor' }, { 'cursor' } }, { tools.enable('resources/cursor'), (names('resources')) })
    t.eq({ 12, 9, 3 }, { #tools.enable('resources'), #names('resources'), (#names('templates')) })
    t.eq(11, #tools.enable('prompts'))
    tools.unregister_prompt('p')
  end)

  it('change the revision once, and only of the affected kind', function()
    register('a')
    register('b')
    local before = vim.deepcopy(registry().revisions)
    tools.disable('registered')
    tools.disable('registered')
    tools.disable('prompts/verify_setup')
    local changed = {}
    for kind, revision in pairs(registry().revisions) do
      changed[kind] = revision - before[kind]
    end
    t.has({ tools = 1, resources = 0, templates = 0, prompts = 1 }, changed)
  end)

  it('leave running calls alone, and refuse new ones', function()
    local held
    register('mine', { execute = function(ctx) held = ctx end })
    local result, refused
    tools.call('mine', {}, function(value) result = value end)
    tools.disable('mine')
    tools.call('mine', {}, function(_, err) refused = err end)
    t.eq('unknown_tool', refused.code)
    held('done')
    t.eq('done', result)
  end)

  it('suggest the nearest name for an unknown one', function()
    local _, err = tools.enable('bufer')
    t.eq({ 'not_found', "did you mean buffer? there is no group or tool 'bufer'" }, { err.code, err.message })
    _, err = tools.disable('resources/curser')
    t.eq("did you mean resources/cursor? there is no group or tool 'resources/curser'", err.message)
    t.raises('name: expected string', function() tools.enable(nil) end)
  end)
end)

describe('reload', function()
  local ECHO = 'mcp-tools.tools.test.echo'

  local function reload(what)
    local failures
    t.eq(true, (tools.reload(what, function(list) failures = list end)))
    return t.wait(function() return failures end)
  end

  it('loads the definition that the file contains now', function()
    tools.setup({ tools = { 'test' } })
    local echo, progress = registry():get('test_echo'), registry():get('test_progress')
    instead(ECHO, t.returns({ name = 'test_echo', description = 'new', execute = function() end }))
    t.eq({ {}, 'new' }, { reload('test_echo'), registry():get('test_echo').description })
    t.ok(registry():get('test_progress') == progress)
    instead(ECHO, nil)
    t.eq({ {}, echo.description }, { reload('test'), registry():get('test_echo').description })
    t.ok(registry():get('test_progress') ~= progress)
    t.eq({}, reload())
  end)

  it('keeps the old definition while the file fails, and reports that', function()
    tools.setup({ tools = { 'test' } })
    local echo = registry():get('test_echo')
    for _, broken in ipairs({
      function() error('broken on purpose') end,
      t.returns(5),
      t.returns({ name = 'other', description = 'x', execute = function() end }),
    }) do
      instead(ECHO, broken)
      local failures = reload('test')
      t.eq({ 1, ECHO, 5 }, { #failures, failures[1].source, (#names()) })
      t.ok(registry():get('test_echo') == echo)
    end
    instead(ECHO, function() return { name = 'test_echo' } end)
    local failures = reload('test_echo')
    t.eq({ 1, ECHO }, { #failures, failures[1].source })
    t.matches("tool 'test_echo': description", failures[1].error)
    t.ok(registry():get('test_echo') == echo)
    tools.disable('test_echo')
    t.eq(4, #names())
    instead(ECHO, nil)
    t.eq({ {}, 5, {} }, { reload('test'), (#tools.enable('test')), require('mcp-tools').report().failures })
  end)

  it('resets the state of sessions, which enable and disable do not', function()
    config.setup({ approval = { default = 'allow' } })
    local function counting()
      return {
        name = 'test_echo',
        description = 'x',
        state = function() return { n = 0 } end,
        execute = function(ctx)
          ctx.state.n = ctx.state.n + 1
          ctx(ctx.state.n)
        end,
      }
    end
    instead(ECHO, counting)
    tools.setup({ tools = { 'test_echo' } })
    local function count()
      return core.get().executor:execute('test_echo', {}, { host = 'test', session = 'a' }).outcome.value
    end
    t.eq({ 1, 2 }, { count(), count() })
    tools.disable('test_echo')
    tools.enable('test_echo')
    t.eq(3, count())
    package.preload[ECHO] = counting
    reload('test_echo')
    t.eq(1, count())
  end)

  it('applies to resources and prompts', function()
    local module = 'mcp-tools.prompts.verify_setup'
    instead(module, t.returns({ name = 'verify_setup', description = 'new', get = function() end }))
    local cursor = { name = 'cursor', uri = 'nvim://elsewhere', read = function() end }
    instead('mcp-tools.resources.cursor', t.returns(cursor))
    reload('prompts/verify_setup')
    t.eq('new', registry().entries.prompts.verify_setup.description)
    reload('resources')
    t.ok(registry().entries.resources['nvim://elsewhere'])
    t.eq(nil, registry().entries.resources['nvim://cursor'])
    instead('mcp-tools.prompts.verify_setup', nil)
    instead('mcp-tools.resources.cursor', nil)
    t.eq({}, reload())
    t.ok(registry().entries.resources['nvim://cursor'])
  end)

  it('reports when there is nothing to load', function()
    register('mine')
    t.fails('not_found', "'mine' has no file to load", tools.reload('mine'))
    t.fails(nil, 'did you mean test%?', tools.reload('tets'))
    t.fails(nil, "^did you mean ext%? there is no source of tools 'exd'$", tools.refresh('exd'))
  end)
end)

describe(':McpTools tools', function()
  notifications.each()
  before_each(function()
    vim.cmd('runtime plugin/mcp-tools.lua')
    tools.setup({ tools = { 'test' } })
  end)

  after_each(function() vim.cmd('silent! only | enew') end)

  local function completions(line) return vim.fn.getcompletion('McpTools tools ' .. line, 'cmdline') end

  it('completes actions and names', function()
    t.eq({ 'disable', 'enable', 'refresh', 'reload' }, completions(''))
    t.eq({ 'test', 'test_async_prompt', 'test_echo' }, vim.list_slice(completions('disable test'), 1, 3))
    t.eq({}, completions('enable test_'))
    t.eq(vim.list_extend({ 'buffer' }, BUFFER), completions('enable buf'))
    t.eq({ 'resources/cursor' }, completions('reload resources/c'))
    register('mine')
    t.eq({ { 'mine' }, {} }, { completions('disable mine'), completions('reload mine') })
    t.eq({ { 'ext' }, {} }, { completions('refresh e'), (completions('nonsense ')) })
    t.eq({}, completions('enable test '))
  end)

  it('switches, reloads and refreshes', function()
    notifications.after('McpTools tools disable test_echo', 'off now: test_echo')
    notifications.after('McpTools tools enable buffer', 'on now: ' .. table.concat(BUFFER, ', '))
    notifications.after('McpTools tools reload buffer', 'reloaded')
    notifications.after('McpTools tools refresh', 'searched again')
    vim.cmd('McpTools tools')
    local text = table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr('^mcp-tools://tools$'), 0, -1, false), '\n')
    t.matches('buffer\n  nvim_' .. BUFFER[1] .. ' ', text)
    t.matches('off; turn on with :McpTools tools enable NAME\n.*  test +test_echo', text)
  end)

  it('reports errors', function()
    instead('mcp-tools.tools.test.echo', function() error('broken on purpose') end)
    notifications.after('McpTools tools reload test_echo', 'could not be loaded: mcp-tools.tools.test.echo: ')
    notifications.after('McpTools tools enable', 'which one? :McpTools tools enable NAME')
    notifications.after('McpTools tools enable nothing_like_it', "there is no group or tool 'nothing_like_it'")
  end)
end)
