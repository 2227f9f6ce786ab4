-- every Neovim
local calls = require('tool_calls')
local config = require('mcp-tools.config')
local project = require('editor_project')
local t = require('helpers')

local folder

before_each(function()
  project.open()
  calls.offer({ 'plugin', 'plugin_call' })
  folder = project.base .. '/pack/some/opt/zebra.nvim'
  project.write(folder .. '/README.md', '# Zebra\n\none\ntwo\n')
  project.write(folder .. '/doc/zebra.txt', '*zebra.txt*\n')
  project.write(folder .. '/lua/zebra/util/deep.lua', 'return {}')
  project.write(folder .. '/lua/zebra/_private.lua', 'return { f = function() end }')
  project.write(
    folder .. '/lua/zebra/init.lua',
    [[local M = { nested = { inner = function(a) return a end }, _state = { hidden = print } }
function M.add(first, second, ...) print('adding') return first + second end
function M._secret() return 1 end
function M.fails() error('no stripes') end
M.value = 1
M.__index = M
return M]]
  )
  vim.o.packpath = project.base .. ',' .. vim.o.packpath
end)

after_each(function()
  for name in pairs(package.loaded) do
    if name:find('^zebra') then
      package.loaded[name] = nil
    end
  end
  vim.cmd('set packpath& runtimepath-=' .. folder)
  project.close()
end)

local function named(list, name)
  return vim.iter(list):find(function(each)
    return each.name == name
  end)
end

describe('plugin_list', function()
  it('names plugins that are loaded and those that are not, once each', function()
    local found = calls.call('plugin_list', { contains = 'ZEBRA' })
    t.eq({ 1, 'zebra.nvim', 'package', false }, {
      found.total,
      found.plugins[1].name,
      found.plugins[1].manager,
      found.plugins[1].loaded,
    })
    t.eq(0, calls.call('plugin_list', { contains = 'zebra', loaded_only = true }).total)
    vim.cmd.packadd('zebra.nvim')
    found = calls.call('plugin_list', { contains = 'zebra' })
    t.eq({ 1, true }, { found.total, found.plugins[1].loaded })
    t.eq(1, #calls.call('plugin_list', { limit = 1 }).plugins)
  end)

  it('names the modules that are loaded', function()
    local found = calls.call('plugin_list', { what = 'modules', contains = 'mcp-tools.core' })
    t.eq({ 'mcp-tools.core' }, found.modules)
    t.eq('validation_error', calls.fails('plugin_list', { what = 'x' }).code)
  end)

  it('hears of managers', function()
    package.loaded['lazy'] = {
      plugins = function()
        return {
          { name = 'lazy-zebra', dir = folder, url = 'https://example.org/z', commit = 'abc', version = 'v1', _ = {} },
          { name = 'missing.nvim', dir = project.base .. '/none', _ = { loaded = {} } },
        }
      end,
    }
    local plugins = calls.call('plugin_list').plugins
    package.loaded['lazy'] = nil
    t.eq({ 'lazy.nvim', false, 'v1' }, {
      named(plugins, 'lazy-zebra').manager,
      named(plugins, 'lazy-zebra').loaded,
      named(plugins, 'lazy-zebra').version,
    })
    t.eq(nil, named(plugins, 'zebra.nvim'))
    t.eq(true, named(plugins, 'missing.nvim').loaded)
  end)
end)

describe('plugin_info', function()
  it('tells of folder, modules, help and readme, and loads nothing', function()
    local found = calls.call('plugin_info', { name = 'zebra' })
    t.eq({ 'zebra.nvim', folder, false }, { found.name, found.path, found.loaded })
    t.eq({ 'zebra', 'zebra._private', 'zebra.util.deep' }, found.modules)
    t.eq({ { 'zebra.txt' }, 'README.md', {} }, { found.help, found.readme, found.loaded_modules })
    t.eq(nil, package.loaded['zebra'])
    found = calls.call('plugin_info', { name = 'zebra.nvim', limit = 1 })
    t.eq({ 1, 3, 1 }, { #found.modules, found.modules_total, found.next_offset })
  end)

  it('tells an address without the password in it', function()
    package.loaded['lazy'] = {
      plugins = function()
        return { { name = 'zebra.nvim', dir = folder, url = 'https://me:hunter2hunter2@example.org/z', _ = {} } }
      end,
    }
    local found = calls.call('plugin_info', { name = 'zebra' })
    package.loaded['lazy'] = nil
    t.matches('example.org/z', found.url)
    t.eq(nil, found.url:find('hunter2', 1, true))
  end)

  it('says what is near to a name that is none', function()
    local err = calls.fails('plugin_info', { name = 'ebra' })
    t.eq('not_found', err.code)
    t.matches('zebra.nvim', err.message)
    t.matches('plugin_list', calls.fails('plugin_info', { name = 'qqqq' }).message)
  end)
end)

describe('plugin_readme', function()
  it('is read in pieces', function()
    local found = calls.call('plugin_readme', { name = 'zebra', limit = 1 })
    t.eq({ '# Zebra', 'README.md', 2 }, { found.text, found.file, found.next_line })
    found = calls.call('plugin_readme', { name = 'zebra', start_line = 3 })
    t.eq({ 'one\ntwo\n', nil }, { found.text, found.next_line })
    t.matches('beyond the end', calls.fails('plugin_readme', { name = 'zebra', start_line = 99 }).message)
    vim.fn.delete(folder .. '/README.md')
    t.matches('no readme', calls.fails('plugin_readme', { name = 'zebra' }).message)
  end)
end)

describe('a plugin that is the project', function()
  local own, outside

  before_each(function()
    own, outside = project.root, project.write(project.base .. '/diary.txt', '*dear-diary* *dear-link* hunter2\n')
    vim.opt.runtimepath:append(own)
  end)

  after_each(function()
    vim.opt.runtimepath:remove(own)
  end)

  it('shows no readme that lies elsewhere', function()
    vim.uv.fs_symlink(outside, own .. '/README.md')
    t.eq('access_denied', calls.fails('plugin_readme', { name = 'project' }).code)
    vim.fn.delete(own .. '/README.md')
    project.write('docs/text.md', 'of the project')
    vim.uv.fs_symlink(own .. '/docs/text.md', own .. '/README.md')
    t.eq('of the project', calls.call('plugin_readme', { name = 'project' }).text)
  end)

  it('shows no help that lies elsewhere', function()
    calls.offer({ 'editor' })
    project.write('doc/tags', 'dear-diary\t../../diary.txt\t/*dear-diary*\ndear-link\tlink.txt\t/*dear-link*\n')
    vim.uv.fs_symlink(outside, own .. '/doc/link.txt')
    t.eq('access_denied', calls.fails('editor_help', { topic = 'dear-link' }).code)
    t.eq(nil, (calls.call('editor_help', { topic = 'dear-diary' }) or {}).text)
    t.eq({}, calls.call('editor_help', { search = 'hunter2' }).lines)
    vim.fn.delete(own .. '/doc', 'rf')
    project.write(project.base .. '/doc/tags', 'dear-diary\t../diary.txt\t/*dear-diary*\n')
    vim.uv.fs_symlink(project.base .. '/doc', own .. '/doc')
    t.eq('not_found', calls.fails('editor_help', { topic = 'dear-diary' }).code)
  end)
end)

describe('plugin_functions', function()
  it('lists the public ones of a module that is loaded', function()
    vim.cmd.packadd('zebra.nvim')
    local err = calls.fails('plugin_functions', { module = 'zebra' })
    t.eq('not_found', err.code)
    t.matches('is not loaded', err.message)
    require('zebra') -- luacheck: ignore
    local found = calls.call('plugin_functions', { module = 'zebra' })
    local names = vim.tbl_map(function(each)
      return each.name .. '(' .. each.parameters .. ')'
    end, found.functions)
    t.eq({ 'add(first, second, ...)', 'fails()', 'nested.inner(a)' }, names)
    t.matches('zebra/init.lua$', found.functions[1].file)
    t.eq(2, found.functions[1].line)
    t.eq(1, #calls.call('plugin_functions', { module = 'zebra', limit = 1 }).functions)
  end)

  it('keeps what is private, ours or no plugin', function()
    for module, code in pairs({
      ['zebra._private'] = 'access_denied',
      ['mcp-tools.bridge'] = 'access_denied',
      ['os'] = 'not_found',
      ['vim.lsp'] = 'not_found',
      ['../x'] = 'validation_error',
      ['none.such'] = 'not_found',
    }) do
      t.eq({ module, code }, { module, calls.fails('plugin_functions', { module = module }).code })
    end
  end)
end)

describe('plugin_call', function()
  before_each(function()
    vim.cmd.packadd('zebra.nvim')
  end)

  it('gives what the function returned and printed', function()
    t.eq(
      { result = '3', type = 'number', output = 'adding' },
      calls.call('plugin_call', { module = 'zebra', ['function'] = 'add', args = { 1, 2 } })
    )
    local inner = { module = 'zebra', ['function'] = 'nested.inner', args = { { a = 1 } } }
    t.eq({ result = '{"a":1}', type = 'table' }, calls.call('plugin_call', inner))
    t.matches('no stripes', calls.fails('plugin_call', { module = 'zebra', ['function'] = 'fails' }).message)
  end)

  it('never calls private ones, ours, or what is no plugin', function()
    for _, case in ipairs({
      { 'zebra', '_secret', 'access_denied' },
      { 'zebra', '_state.hidden', 'access_denied' },
      { 'zebra', 'nested._x', 'access_denied' },
      { 'zebra._private', 'f', 'access_denied' },
      { 'mcp-tools.bridge', 'get_auth_token', 'access_denied' },
      { 'os', 'getenv', 'not_found' },
      { 'zebra', 'value', 'not_found' },
      { 'zebra', 'none.such', 'not_found' },
    }) do
      local err = calls.fails('plugin_call', { module = case[1], ['function'] = case[2] })
      t.eq(case, { case[1], case[2], err.code })
    end
  end)

  it('asks, and exists only where its own name stands', function()
    config.setup({ approval = { rule = function() end } })
    t.eq('access_denied', calls.fails('plugin_call', { module = 'zebra', ['function'] = 'add' }).code)
    local registry = require('mcp-tools.core').get().registry
    t.eq(
      'require(\'zebra\').add(1, "a")',
      registry:find_tool('plugin_call').preview({
        module = 'zebra',
        ['function'] = 'add',
        args = { 1, 'a' },
      })
    )
    config.reset()
    config.setup({ tools = { 'plugin' } })
    registry = require('mcp-tools.core').get().registry
    t.eq(nil, registry:find_tool('plugin_call'))
    t.ok(registry:find_tool('plugin_list'))
  end)
end)
