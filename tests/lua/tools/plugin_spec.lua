-- every Neovim
local config = require('mcp-tools.config')
local p = require('tools_project')
local t = require('helpers')

local folder

before_each(function()
  p.open({ 'plugin', 'plugin_call', 'editor_lookup' })
  folder = p.base .. '/pack/some/opt/zebra.nvim'
  p.write(folder .. '/README.md', '# Zebra\n\none\ntwo\n')
  p.write(folder .. '/doc/zebra.txt', '*zebra.txt*\n')
  p.write(folder .. '/lua/zebra/util/deep.lua', 'return {}')
  p.write(folder .. '/lua/zebra/_private.lua', 'return { f = function() end }')
  p.write(
    folder .. '/lua/zebra/init.lua',
    [[local M = { nested = { inner = function(a) return a end }, _state = { hidden = print } }
function M.add(first, second, ...) print('adding') return first + second end
function M._secret() return 1 end
function M.fails() error('no stripes') end
M.value = 1
M.__index = M
return M]]
  )
  vim.o.packpath = p.base .. ',' .. vim.o.packpath
end)

after_each(function()
  for name in pairs(package.loaded) do
    if name:find('^zebra') then
      package.loaded[name] = nil
    end
  end
  vim.cmd('set packpath& runtimepath-=' .. folder)
  p.close()
end)

describe('editor_lookup of plugins', function()
  local function rows(query) return p.ok('editor_lookup', { what = 'plugins', query = query }).rows end

  it('lists loaded and other plugins once each', function()
    t.eq({ 'zebra.nvim (package, not loaded)' }, rows('ZEBRA'))
    vim.cmd.packadd('zebra.nvim')
    t.eq({ 'zebra.nvim (package, loaded)' }, rows('zebra'))
  end)

  it('reads plugin managers', function()
    package.loaded['lazy'] = {
      plugins = function()
        return {
          { name = 'lazy-zebra', dir = folder, url = 'https://example.org/z', commit = 'abc', version = 'v1', _ = {} },
          { name = 'missing.nvim', dir = p.base .. '/none', _ = { loaded = {} } },
        }
      end,
    }
    local found = rows('zebra')
    local missing = rows('missing')
    package.loaded['lazy'] = nil
    t.eq({ 'lazy-zebra v1 (lazy.nvim, not loaded)' }, found)
    t.eq({ 'missing.nvim (lazy.nvim, loaded)' }, missing)
  end)
end)

describe('plugin_info', function()
  it('returns directory, modules, help and readme, and loads nothing', function()
    local about = 'zebra.nvim (package, not loaded)\ndirectory: %s\nhelp: zebra.txt\nreadme: README.md\nmodules: 3'
    t.eq(about:format(folder) .. '\nzebra\nzebra._private\nzebra.util.deep', p.text('plugin_info', { name = 'zebra' }))
    t.eq(nil, package.loaded['zebra'])
    local actual = p.text('plugin_info', { name = 'zebra', limit = 1, offset = 1 })
    t.matches('modules: 3; 2%-2 shown, offset=2 continues\nzebra._private$', actual)
  end)

  it('returns a URL without its password', function()
    package.loaded['lazy'] = {
      plugins = function()
        return { { name = 'zebra.nvim', dir = folder, url = 'https://me:hunter2hunter2@example.org/z', _ = {} } }
      end,
    }
    local found = p.ok('plugin_info', { name = 'zebra' }).head
    package.loaded['lazy'] = nil
    t.matches('example.org/z', found)
    t.eq(nil, found:find('hunter2', 1, true))
  end)

  it('suggests similar names for an unknown one', function()
    p.fails('not_found', 'zebra.nvim', 'plugin_info', { name = 'ebra' })
    p.fails('not_found', 'editor_lookup', 'plugin_info', { name = 'qqqq' })
  end)

  it('returns the readme in pages', function()
    local actual = p.text('plugin_info', { name = 'zebra', readme = true, limit = 1 })
    t.eq('README.md; 1-1 shown, offset=1 continues\n# Zebra', actual)
    t.eq({ 'one', 'two', '' }, p.ok('plugin_info', { name = 'zebra', readme = true, offset = 2 }).rows)
    vim.fn.delete(folder .. '/README.md')
    p.fails('not_found', 'no readme', 'plugin_info', { name = 'zebra', readme = true })
  end)

  it('lists the public functions of a loaded module', function()
    vim.cmd.packadd('zebra.nvim')
    p.fails('not_found', 'is not loaded', 'plugin_info', { module = 'zebra' })
    require('zebra') -- luacheck: ignore
    t.matches(
      '^3 functions\nadd%(first, second, ...%) %(.*zebra/init.lua:2%)\nfails%(%) .*\nnested.inner%(a%) [^\n]*$',
      p.text('plugin_info', { module = 'zebra' })
    )
  end)

  it('refuses private modules, our own, and those of no plugin', function()
    for module, code in pairs({
      ['zebra._private'] = 'access_denied',
      ['mcp-tools.bridge'] = 'access_denied',
      ['os'] = 'not_found',
      ['vim.lsp'] = 'not_found',
      ['../x'] = 'validation_error',
      ['none.such'] = 'not_found',
    }) do
      p.fails(code, '', 'plugin_info', { module = module })
    end
    p.fails('validation_error', 'exactly one of name and module', 'plugin_info')
  end)
end)

describe('a plugin that is the project', function()
  local own, outside

  before_each(function()
    own, outside = p.root, p.write(p.base .. '/diary.txt', '*dear-diary* *dear-link* hunter2\n')
    vim.opt.runtimepath:append(own)
  end)

  after_each(function() vim.opt.runtimepath:remove(own) end)

  it('shows no readme outside of it', function()
    vim.uv.fs_symlink(outside, own .. '/README.md')
    p.fails('access_denied', '', 'plugin_info', { name = 'project', readme = true })
    vim.fn.delete(own .. '/README.md')
    p.write('docs/text.md', 'of the project')
    vim.uv.fs_symlink(own .. '/docs/text.md', own .. '/README.md')
    t.eq({ 'of the project' }, p.ok('plugin_info', { name = 'project', readme = true }).rows)
  end)

  it('shows no help outside of it', function()
    require('editor_project').offer({ 'editor' })
    p.write('doc/tags', 'dear-diary\t../../diary.txt\t/*dear-diary*\ndear-link\tlink.txt\t/*dear-link*\n')
    vim.uv.fs_symlink(outside, own .. '/doc/link.txt')
    local function rows(query) return p.ok('editor_lookup', { what = 'help', query = query }).rows end
    t.eq({ {}, {}, {} }, { rows('dear-link'), rows('dear-diary'), rows('hunter2') })
    vim.fn.delete(own .. '/doc', 'rf')
    p.write(p.base .. '/doc/tags', 'dear-diary\t../diary.txt\t/*dear-diary*\n')
    vim.uv.fs_symlink(p.base .. '/doc', own .. '/doc')
    t.eq({}, rows('dear-diary'))
  end)
end)

describe('plugin_call', function()
  before_each(function() vim.cmd.packadd('zebra.nvim') end)

  it('returns the result and the output of the function', function()
    local sum = p.ok('plugin_call', { module = 'zebra', ['function'] = 'add', args = { 1, 2 } })
    t.eq({ result = '3', type = 'number', output = 'adding' }, sum)
    local inner = { module = 'zebra', ['function'] = 'nested.inner', args = { { a = 1 } } }
    t.eq({ result = '{"a":1}', type = 'table' }, p.ok('plugin_call', inner))
    p.fails('tool_error', 'no stripes', 'plugin_call', { module = 'zebra', ['function'] = 'fails' })
  end)

  it('never calls private functions, our own, or those of no plugin', function()
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
      p.fails(case[3], '', 'plugin_call', { module = case[1], ['function'] = case[2] })
    end
  end)

  it('needs approval, and is only enabled by its own name', function()
    config.setup({ approval = { rule = function() end } })
    p.fails('access_denied', '', 'plugin_call', { module = 'zebra', ['function'] = 'add' })
    local preview = require('mcp-tools.tools.plugin.call').preview
    t.eq([[require('zebra').add(1, "a")]], preview({ module = 'zebra', ['function'] = 'add', args = { 1, 'a' } }))
    config.reset()
    config.setup({ tools = { 'plugin' } })
    local registry = require('mcp-tools.core').get().registry
    t.eq(nil, registry:find_tool('plugin_call'))
    t.ok(registry:find_tool('plugin_info'))
  end)
end)
