local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local discovery = require('mcp-tools.loading')
local source = require('mcp-tools.registry.source')
local tools = require('mcp-tools')
local t = require('helpers')

local uv = vim.uv

--- The directory of a plugin on the runtimepath, with files of tools.
local plugin

local function path_of(name) return ('%s/lua/mcp-tools/ext/%s.lua'):format(plugin, name) end

--- Writes a file of tools. No two writes have the same time, however coarse the clock of the file system is.
local age = 1000
local function write(name, text)
  vim.fn.mkdir(vim.fs.dirname(path_of(name)), 'p')
  local file = assert(io.open(path_of(name), 'w'))
  file:write(text)
  file:close()
  age = age + 1
  uv.fs_utime(path_of(name), age, age)
end

local function definition(name, description)
  local text = "{ name = '%s', description = '%s', execute = function(ctx) ctx('%s') end }"
  return text:format(name, description or 'x', description or 'x')
end

local function refresh()
  local done
  discovery.refresh(core.get().registry, nil, function() done = true end)
  t.wait(function() return done end)
end

local function names() return t.field('name', core.get().registry:list('tools')) end

local function failure_of(name)
  for _, failure in ipairs(require('mcp-tools').report().failures) do
    if failure.source == path_of(name) then
      return failure.error
    end
  end
end

before_each(function()
  plugin = ('%s/plugin-%d'):format(uv.fs_realpath(vim.fs.dirname(vim.fn.tempname())), uv.hrtime())
  vim.fn.mkdir(plugin, 'p')
  vim.opt.runtimepath:append(plugin)
  tools.setup({ tools = false })
end)

after_each(function()
  vim.opt.runtimepath:remove(plugin)
  vim.env.MCP_TOOLS_CACHE_TTL = nil
  refresh()
  vim.fn.delete(plugin, 'rf')
  core.get().registry:clear('tools')
  config.reset()
end)

describe('tools of other plugins', function()
  it('are trusted like registered ones, and name their file', function()
    write('one', 'return ' .. definition('one'))
    refresh()
    local one = core.get().registry:get('one')
    t.eq({ 'registered', 'one', path_of('one') }, { one.source.origin, one.source.name, one.source.found_in })
    t.eq('file:' .. path_of('one'), source.key(one))
    t.eq({ true, false }, { source.is_trusted(one, '/elsewhere'), source.is_trusted(one, plugin) })
  end)

  it('are not trusted when the file is in the project, wherever their handler is', function()
    write('far', "return { name = 'far', description = 'x', execute = vim.schedule }")
    refresh()
    local far = core.get().registry:get('far')
    t.eq({ true, false }, { source.is_trusted(far, '/elsewhere'), source.is_trusted(far, plugin) })
  end)

  it('do not affect each other when they fail', function()
    write('a_syntax', 'return {')
    write('b_throws', "error('thrown on purpose')")
    write('c_nothing', 'local x = 1')
    write('d_number', 'return 5')
    write('e_half', ("return { %s, { name = 'bad' }, 'odd', %s }"):format(definition('good'), definition('fine')))
    write('f_whole', 'return ' .. definition('whole'))
    refresh()
    t.eq({ 'fine', 'good', 'whole' }, names())
    t.matches('a_syntax', failure_of('a_syntax'))
    t.matches('thrown on purpose', failure_of('b_throws'))
    t.matches('it must return a definition', failure_of('c_nothing'))
    t.matches('must return a definition or a list of them, got number', failure_of('d_number'))
    t.matches("tool 'bad': description: is required", failure_of('e_half'))
    t.eq(6, #require('mcp-tools').report().failures) -- one of e_half is not a table
  end)

  it('do not affect each other, whatever a file returns', function()
    local odd = {
      cyclic = "local t = { name = 'x', description = 'x', args = {}, execute = print } t.args.a = t.args return t",
      itself = 'local t = {} t[1] = t return t',
      odd = "return { { name = {}, description = 1, execute = 'x' }, false, 5, 'x', print }",
      pairs = 'local s = setmetatable({}, { __pairs = error })'
        .. " return { name = 'x', description = 'x', execute = print, input_schema = s }",
      throws = "return { name = 'x', description = setmetatable({}, { __index = error }), execute = print }",
    }
    for name, text in pairs(odd) do
      write(name, text)
    end
    write('zlast', 'return ' .. definition('zlast'))
    refresh()
    t.eq({ 'zlast' }, names())
    for name in pairs(odd) do
      t.eq('string', type(failure_of(name)))
    end
  end)

  it('are updated by the next refresh, and stay unchanged while their file fails', function()
    write('one', 'return ' .. definition('one', 'old'))
    refresh()
    write('one', 'return {')
    refresh()
    t.eq('old', core.get().registry:get('one').description)
    t.ok(failure_of('one'))
    write('one', 'return ' .. definition('one', 'new'))
    refresh()
    t.eq({ 'new', nil }, { core.get().registry:get('one').description, (failure_of('one')) })
  end)

  it('are retried while they fail, even if their file has not changed', function()
    write('one', "return require('discovery_spec_needed')")
    refresh()
    t.matches('discovery_spec_needed', failure_of('one'))
    package.loaded.discovery_spec_needed = { name = 'late', description = 'x', execute = function() end }
    refresh()
    package.loaded.discovery_spec_needed = nil
    t.eq({ { 'late' }, nil }, { names(), (failure_of('one')) })
  end)

  it('are added, changed and removed with their files', function()
    write('one', 'return ' .. definition('one'))
    write('two', ('return { %s, %s }'):format(definition('a'), definition('b')))
    refresh()
    local kept = core.get().registry:get('one')
    local revision = core.get().registry.revisions.tools
    refresh()
    t.eq(revision, core.get().registry.revisions.tools)
    write('two', ('return { %s, %s }'):format(definition('b', 'changed'), definition('c')))
    write('three', 'return ' .. definition('three'))
    refresh()
    t.eq({ { 'b', 'c', 'one', 'three' }, 'changed' }, { names(), core.get().registry:get('b').description })
    t.ok(kept == core.get().registry:get('one'), 'a file that is as before is not loaded again')
    os.remove(path_of('two'))
    refresh()
    t.eq({ 'one', 'three' }, names())
  end)

  it('are reloaded on request, and only those', function()
    write('one', 'return ' .. definition('a'))
    write('two', 'return ' .. definition('b'))
    refresh()
    local a, b = core.get().registry:get('a'), core.get().registry:get('b')
    local failures
    t.ok(tools.reload('one', function(list) failures = list end))
    t.eq({}, t.wait(function() return failures end))
    t.ok(core.get().registry:get('a') ~= a and core.get().registry:get('b') == b)
    tools.reload('b')
    t.ok(core.get().registry:get('b') ~= b)
  end)

  it('are disabled by the options, by tool or by file', function()
    write('one', ('return { %s, %s }'):format(definition('a'), definition('b')))
    write('two', 'return ' .. definition('c'))
    tools.setup({ tools = { a = false, two = false } })
    refresh()
    t.eq({ 'b' }, names())
    tools.setup({ tools = { two = true } })
    t.eq({ 'b', 'c' }, names())
    os.remove(path_of('one'))
    refresh()
    tools.setup({ tools = { a = true } })
    t.eq({ 'c' }, names())
  end)

  it('are updated when their file is written in this editor', function()
    refresh()
    write('other', 'return ' .. definition('other'))
    vim.cmd.edit(path_of('one'))
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'return ' .. definition('one') })
    vim.cmd('silent write')
    t.eq({ 'one', 'other' }, names())
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'return {' })
    vim.cmd('silent write')
    t.ok(failure_of('one'))
    vim.cmd('bwipeout!')
  end)

  it('do not replace those that others have registered', function()
    tools.register({ name = 'one', description = 'mine', execute = function() end })
    write('one', 'return ' .. definition('one'))
    write('two', 'return ' .. definition('one'))
    refresh()
    t.eq('mine', core.get().registry:get('one').description)
    t.matches("tool 'one': name: it is taken by registered by .*discovery_spec.lua", failure_of('one'))
    tools.unregister('one')
    refresh()
    t.eq(path_of('one'), core.get().registry:get('one').source.found_in)
    t.matches('it is taken by registered one', failure_of('two'))
    tools.register({ name = 'one', description = 'mine', execute = function() end })
    os.remove(path_of('one'))
    os.remove(path_of('two'))
    refresh()
    t.eq('mine', core.get().registry:get('one').description)
  end)

  it('are not searched before setup, nor below a relative entry of the runtimepath', function()
    write('one', 'return ' .. definition('one'))
    config.reset()
    t.ok(not vim.list_contains(names(), 'one'))
    tools.setup({ tools = false })
    local before = vim.fn.getcwd()
    vim.opt.runtimepath:remove(plugin)
    vim.fn.chdir(plugin)
    vim.opt.runtimepath:append('.')
    refresh()
    vim.opt.runtimepath:remove('.')
    vim.fn.chdir(before)
    t.eq({}, names())
  end)

  it('of the project are run only if the user trusts the current text of the file', function()
    vim.fn.mkdir(plugin .. '/.git')
    local before = vim.fn.getcwd()
    vim.fn.chdir(plugin)
    write('one', 'vim.g.discovery_spec_ran = true return ' .. definition('one'))
    refresh()
    t.eq({ {}, nil }, { names(), vim.g.discovery_spec_ran })
    t.matches('not trusted: .*:trust', failure_of('one'))
    vim.cmd.edit(path_of('one'))
    vim.cmd('silent trust')
    refresh()
    t.eq({ { 'one' }, false }, { names(), (source.is_trusted(core.get().registry:get('one'), plugin)) })
    write('one', 'return ' .. definition('two'))
    refresh()
    t.eq({ 'one' }, names())
    t.matches('not trusted', failure_of('one'))
    write('one', 'return \0')
    write('other', 'return 1')
    refresh()
    t.matches('a NUL byte', failure_of('one'))
    t.matches('not trusted', failure_of('other'))
    vim.cmd('silent! bwipeout!')
    vim.fn.chdir(before)
  end)
end)

describe('the result of a search', function()
  it('is used for its time to live', function()
    core.get()
    write('one', 'return ' .. definition('one'))
    vim.wait(20, function() return #names() > 0 end, 5)
    t.eq({}, names())
    vim.env.MCP_TOOLS_CACHE_TTL = '0'
    refresh()
    write('two', 'return ' .. definition('two'))
    t.wait(function() return #names() == 2 end)
  end)

  it('has a time to live of five minutes, or of the environment variable', function()
    t.eq(300, discovery.ttl())
    for text, seconds in pairs({ ['7'] = 7, ['0.5'] = 0.5, ['0'] = 0, ['-1'] = 300, ['soon'] = 300, [''] = 300 }) do
      vim.env.MCP_TOOLS_CACHE_TTL = text
      t.eq(seconds, discovery.ttl())
    end
  end)

  it('is reported with its files, failures and age', function()
    write('one', ('return { %s, %s }'):format(definition('b'), definition('a')))
    write('two', 'return 5')
    refresh()
    local report = discovery.report()[1]
    t.eq({ 'ext', 300000 }, { report.name, report.ttl_ms })
    t.ok(report.age_ms >= 0 and report.age_ms < 60000)
    t.eq({ { file = path_of('one'), tools = { 'a', 'b' } }, { file = path_of('two'), tools = {} } }, report.found)
    t.eq(path_of('two'), report.failures[1].source)
  end)

  it('notifies listeners', function()
    local heard = 0
    local stop = discovery.on_scan(function() heard = heard + 1 end)
    refresh()
    local before = heard
    t.ok(before > 0)
    stop()
    refresh()
    t.eq(before, heard)
  end)
end)

describe('a source', function()
  local pending, fails

  before_each(function()
    pending, fails = {}, false
    package.loaded['mcp-tools.loading.spec'] = {
      scan = function(_, done)
        if fails then
          error('broken on purpose')
        end
        table.insert(pending, done)
      end,
      found = function() return {} end,
      failures = function() return {} end,
    }
    table.insert(discovery.SOURCES, 'spec')
  end)

  after_each(function()
    for _, done in ipairs(pending) do
      done()
    end
    table.remove(discovery.SOURCES)
    package.loaded['mcp-tools.loading.spec'] = nil
  end)

  it('can end later, and gets one request at a time', function()
    local heard = {}
    for i = 1, 2 do
      discovery.refresh(core.registry(), 'spec', function() table.insert(heard, i) end)
    end
    t.eq({ 1, {} }, { #pending, heard })
    pending[1]()
    pending[1]()
    t.eq({ 2, { 1 } }, { #pending, heard })
    pending[2]()
    t.eq({ 2, { 1, 2 } }, { #pending, heard })
  end)

  it('gets the next request, even if a listener throws', function()
    local heard = {}
    local stop = discovery.on_scan(function()
      table.insert(heard, 'listener')
      error('broken on purpose')
    end)
    discovery.refresh(core.registry(), 'spec', function() error('broken on purpose') end)
    for i = 2, 3 do
      discovery.refresh(core.registry(), 'spec', function() table.insert(heard, i) end)
    end
    for i = 1, 3 do
      t.ok(pending[i])()
    end
    stop()
    t.eq({ { 'listener', 2, 'listener', 3, 'listener' }, {} }, { heard, tools.report().failures })
  end)

  it('gets no automatic request while one is pending', function()
    vim.env.MCP_TOOLS_CACHE_TTL = '0'
    discovery.refresh(core.registry(), 'spec')
    t.eq(1, #pending)
    for _ = 1, 3 do
      core.get()
      vim.wait(5)
    end
    t.eq(1, #pending)
    pending[1]()
    t.eq(1, #pending)
    core.get()
    t.wait(function() return #pending == 2 end)
  end)

  it('that throws is reported until it succeeds, and does not block others', function()
    fails = true
    write('one', 'return ' .. definition('one'))
    refresh()
    t.eq({ 'one' }, names())
    t.matches('broken on purpose', require('mcp-tools').report().failures[1].error)
    fails = false
    discovery.refresh(core.registry(), 'spec')
    t.eq({}, require('mcp-tools').report().failures)
  end)
end)
