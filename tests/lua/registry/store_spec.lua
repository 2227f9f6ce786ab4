local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local kinds = require('mcp-tools.registry.kinds')
local Registry = require('mcp-tools.registry.store')
local source = require('mcp-tools.registry.source')
local t = require('helpers')

local function tool(name, more)
  return vim.tbl_extend('force', { name = name, description = 'x', execute = function() end }, more or {})
end

describe('a registry', function()
  it('forbids additional properties in the arguments of bundled tools only', function()
    local registry = Registry.new()
    local given = { n = { type = 'object', properties = { x = { type = 'string' } } }, any = { type = 'object' } }
    registry:add('tools', tool('ours', { args = given }), { origin = 'bundled' })
    registry:add('tools', tool('theirs', { args = given }), { origin = 'registered' })
    local ours, theirs = registry:get('ours').input_schema, registry:get('theirs').input_schema
    t.eq({ false, false }, { ours.additionalProperties, ours.properties.n.additionalProperties })
    t.eq({}, { ours.properties.any.additionalProperties })
    t.eq({}, { theirs.additionalProperties, theirs.properties.n.additionalProperties })
  end)

  it('refuses an invalid definition with all faults, and keeps the old one', function()
    local registry = Registry.new()
    registry:add('tools', tool('x', { title = 'old' }))
    local _, fault = registry:add('tools', { name = 'x', args = { n = { type = 5 } }, timeout = -1 })
    t.matches({ "tool 'x': args%.n%.type", "tool 'x': description", "tool 'x': timeout", 'execute' }, fault)
    t.eq({ 'old', fault }, { registry:get('x').title, registry.refused.x })
    registry:add('tools', tool('x'))
    t.eq(nil, registry.refused.x)
    registry:add('resources', { uri = 'x://y' })
    registry:remove('resources', 'x://y') -- which also forgets the failure
    t.eq({}, registry.refused)
  end)

  it('that is cleared of one kind keeps the failures of the others', function()
    local registry = Registry.new()
    registry:add('tools', { name = 'x' })
    registry:add('resources', { uri = 'x://y' })
    registry:add('prompts', { name = 'x' })
    t.eq(3, vim.tbl_count(registry.refused))
    registry:clear('tools')
    t.eq({ "prompt 'x'", "resource 'x://y'" }, vim.fn.sort(vim.tbl_keys(registry.refused)))
  end)

  it('refuses two names that clients cannot distinguish', function()
    local registry = Registry.new()
    assert(registry:add('tools', tool('a_b')))
    local _, fault = registry:add('tools', tool('a-b'))
    t.matches("cannot distinguish it from 'a_b'", fault)
    registry:remove('tools', 'a_b')
    t.ok(registry:add('tools', tool('a-b')))
  end)

  it('records the file of a handler', function()
    local registry = Registry.new()
    t.matches('store_spec%.lua$', registry:add('tools', tool('x')).source.file)
  end)
end)

describe("guill's functions", function()
  local registry = require('mcp-tools.registry')

  before_each(function()
    config.setup({ approval = { default = 'allow' } })
    registry.clear()
  end)

  after_each(function()
    registry.clear_pending()
    registry.clear()
    config.reset()
  end)

  it('register, list, get, has, count, unregister', function()
    registry.register(tool('x', { args = { n = { type = 'number' } } }))
    t.eq({ name = 'x', description = 'x', args = { n = { type = 'number' } } }, registry.list().x)
    t.eq({ true, 1, 'x' }, { registry.has('x'), registry.count(), registry.get('x').name })
    t.raises('description', function()
      registry.register({ name = 'y', execute = function() end })
    end)
    registry.unregister('x')
    t.eq({ false, 0 }, { registry.has('x'), registry.count() })
  end)

  it('execute returns a result, or a task whose result can be polled', function()
    local held
    registry.register(tool('now', { execute = t.answers({ 1 }) }))
    registry.register(tool('bad', { execute = t.answers(nil, 'no') }))
    registry.register(tool('later', { timeout = 700, execute = function(cb) held = cb end }))
    t.eq({ done = true, result = { 1 } }, registry.execute('now', {}))
    t.eq({ done = true, error = 'no' }, registry.execute('bad', {}))
    t.eq({ done = true, error = 'Unknown tool: nope' }, registry.execute('nope', {}))
    local reply = registry.execute('later', {})
    t.eq({ true, 700 }, { reply.pending, reply.timeout })
    t.eq({ { done = false }, 1 }, { registry.get_result(reply.task_id), (registry.pending_count()) })
    held('there')
    t.eq({ done = true, result = 'there' }, registry.get_result(reply.task_id))
    t.eq({ done = true, result = 'there' }, registry.get_result(reply.task_id))
    t.matches('Unknown or expired task', registry.get_result('x').error)
  end)

  it('execute of an invalid name returns an error', function()
    config.setup({ tool_prefix = 'nvim_' })
    t.eq({ done = true, error = 'Unknown tool: nil' }, registry.execute(nil, {}))
  end)

  it('cancel_task notifies the tool and returns whether there was one', function()
    local reason
    local function execute(ctx)
      ctx:on_cancel(function(why) reason = why end)
    end
    registry.register(tool('later', { execute = execute }))
    local reply = registry.execute('later', {})
    t.eq({ cancelled = true }, registry.cancel_task(reply.task_id))
    t.eq({ { cancelled = false }, 'user' }, { registry.cancel_task(reply.task_id), reason })
    t.eq(0, registry.pending_count())
  end)
end)

describe('bundled tools', function()
  after_each(function()
    config.reset()
    core.get()
  end)

  it('follow the option, and do not replace those of others', function()
    local registry = core.get().registry
    registry:add('tools', tool('file_read', { title = 'mine' }))
    config.setup({ tools = { 'buffer', 'test_echo' } })
    core.get()
    t.ok(registry:get('buffer_list') and registry:get('test_echo') and not registry:get('test_progress'))
    t.eq('mine', registry:get('file_read').title)
    config.setup({ tools = { 'test' } })
    core.get()
    t.eq({ nil, 'mine' }, { registry:get('buffer_list'), registry:get('file_read').title })
    registry:clear('tools')
  end)
end)

describe('call()', function()
  local mcp_tools = require('mcp-tools')

  before_each(function() config.setup({ approval = { default = 'allow' } }) end)

  after_each(function()
    core.get().registry:clear('tools')
    config.reset()
  end)

  it('waits in a coroutine, also in that of a run tool', function()
    mcp_tools.register(tool('inner', {
      execute = function(ctx, args)
        vim.defer_fn(function() ctx(args.n * 2) end, 5)
      end,
      args = { n = { type = 'number' } },
    }))
    local def = tool('outer', {
      run = function(ctx)
        local sum = 0
        for i = 1, 3 do
          sum = sum + mcp_tools.call('inner', { n = i })
          ctx:await(vim.schedule)
        end
        return sum
      end,
    })
    def.execute = nil
    mcp_tools.register(def)
    local result
    coroutine.wrap(function() result = { mcp_tools.call('outer', {}) } end)()
    t.wait(function() return result end)
    t.eq({ 12 }, result)
    local outside
    vim.schedule(function() outside = { pcall(mcp_tools.call, 'inner', { n = 1 }) } end) -- the spec may run in a coroutine
    t.wait(function() return outside end)
    t.matches('works only in a coroutine', outside[2])
  end)

  it('reports progress and states and can be cancelled', function()
    local seen = {}
    local def = tool('steps', {
      run = function(ctx)
        ctx:progress(1, 2, 'half')
        coroutine.yield({ at = 'middle' })
        ctx:await(function() end)
      end,
    })
    def.execute = nil
    mcp_tools.register(def)
    local handle = mcp_tools.call('steps', {}, {
      on_progress = function(progress) table.insert(seen, progress.message) end,
      on_state = function(state) table.insert(seen, state.at) end,
    }, function(_, err) table.insert(seen, err.code) end)
    vim.wait(20)
    t.eq({ true, { 'half', 'middle', 'cancelled' } }, { handle:cancel(), seen })
  end)
end)

--- A made-up kind: one row, and a module that normalizes its definitions.
local row = { kind = 'songs', option = 'songs', key = 'title', what = 'song', heading = 'songs' }
row.definition = 'song_definition'
table.insert(kinds.rows, 1, row)
package.loaded.song_definition = {
  normalize = function(def)
    if not def.play then
      return nil, ("song '%s': play: is required"):format(tostring(def.title))
    end
    return { key = def.title, name = def.title, handler = def.play, lint = {} }
  end,
  published = function(def) return { title = def.name } end,
}

local Registrations = require('mcp-tools.registry.registrations')
local wire = require('mcp-tools.rpc')

local function song(title)
  return { title = title, play = function() end }
end

local function registry() return core.get().registry end

local function listed() return vim.json.decode(wire.list('songs').json) end

describe('another kind', function()
  after_each(function() registry():clear('songs') end)

  it('is added, listed to clients, and removed', function()
    local heard = {}
    local stop = registry():on_change(function(kind, revision) table.insert(heard, { kind, revision }) end)
    t.ok(registry():add('songs', song('b')) and registry():add('songs', song('a')))
    t.eq({ { title = 'a' }, { title = 'b' } }, listed())
    t.eq({ true, false }, { registry():remove('songs', 'b'), (registry():remove('songs', 'b')) })
    t.eq({ { { title = 'a' } }, { { 'songs', 1 }, { 'songs', 2 }, { 'songs', 3 } } }, { listed(), heard })
    t.eq({ unchanged = true, revision = 3 }, { unchanged = wire.list('songs', 3).unchanged, revision = 3 })
    stop()
  end)

  it('is refused by its own rules, and reported', function()
    local _, fault = registry():add('songs', { title = 'x' })
    t.eq("song 'x': play: is required", fault)
    t.eq({ source = "song 'x'", error = fault }, require('mcp-tools').report().failures[1])
  end)

  it('is shown to users and switched by its option', function()
    registry():add('songs', song('a'))
    local item = vim.iter(require('mcp-tools.groups').items()):find(function(each) return each.kind == 'songs' end)
    t.eq({ kind = 'songs', name = 'a', on = true, loadable = false }, item)
    for _, name in ipairs({ 'songs', 'songs/a' }) do
      t.ok(vim.list_contains(require('mcp-tools.groups').names(), name))
    end
    t.ok(vim.list_contains(kinds.options(), 'songs'))
  end)

  it('can belong to a set of registrations', function()
    local place, other = Registrations.new('songs', vim.uv.cwd), Registrations.new('songs', vim.uv.cwd)
    local function registered() return { origin = 'registered' } end
    t.eq({}, place:replace(registry(), { song('a'), song('b') }, registered))
    t.matches("song 'a': title: it is taken by", other:replace(registry(), { song('a') }, registered)[1])
    t.eq({}, place:replace(registry(), { song('b') }, registered))
    t.eq({}, other:replace(registry(), { song('a') }, registered))
    place:keep(registry())
    t.eq({ { title = 'a' } }, listed())
  end)
end)

it('kinds that share an option are distinguished by the key of a definition', function()
  t.eq('resources', kinds.row_of('resources', { uri = 'x://y' }).kind)
  t.eq('templates', kinds.row_of('resources', { uri_template = 'x://{y}' }).kind)
  t.eq('resources', kinds.row_of('templates', { uri = 'x://y' }).kind)
  t.eq('resources', kinds.row_of('resources', {}).kind)
  t.eq('tools', kinds.row_of('tools', 'nonsense').kind)
  t.raises("unknown kind 'nothing'", function() kinds.row('nothing') end)
end)

describe('a file belongs to the project', function()
  local uv = vim.uv
  local base = uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/source-spec'
  local project, outside = base .. '/project', base .. '/outside'

  local function file(path)
    vim.fn.mkdir(vim.fs.dirname(path), 'p')
    vim.fn.writefile({}, path)
    return path
  end

  local function link(to, path)
    vim.fn.mkdir(vim.fs.dirname(path), 'p')
    assert(uv.fs_symlink(to, path))
    return path
  end

  before_each(function()
    file(project .. '/own.lua')
    file(outside .. '/theirs.lua')
  end)

  after_each(function() vim.fn.delete(base, 'rf') end)

  it('when it is inside, also through links', function()
    t.eq(true, source.is_project_file(project .. '/own.lua', project))
    t.eq(true, source.is_project_file(link(project .. '/own.lua', outside .. '/to-own.lua'), project))
    t.eq(true, source.is_project_file(link(project, outside .. '/directory') .. '/own.lua', project))
    t.eq(false, source.is_project_file(outside .. '/theirs.lua', project))
    t.eq(false, source.is_project_file(project .. '-other/own.lua', project))
  end)

  it('when a link inside leads to a file, a directory or a link outside', function()
    for _, path in ipairs({
      link(outside .. '/theirs.lua', project .. '/absolute.lua'),
      link('../outside/theirs.lua', project .. '/relative.lua'),
      link(outside, project .. '/directory') .. '/theirs.lua',
      link('absolute.lua', project .. '/again.lua'),
      link(project .. '/absolute.lua', outside .. '/in-and-out.lua'),
      link(project .. '/directory', base .. '/alias') .. '/theirs.lua',
      link(project, base .. '/spelled') .. '/absolute.lua',
      project .. '/directory/../project/absolute.lua',
    }) do
      t.eq({ path, true }, { path, source.is_project_file(path, project) })
    end
  end)

  it('also when its links are dangling or circular', function()
    t.eq(true, source.is_project_file(link(outside .. '/none', project .. '/dangling'), project))
    link('b', project .. '/a')
    t.eq(true, source.is_project_file(link('a', project .. '/b'), project))
    t.eq(false, source.is_project_file(link('c', outside .. '/c'), project))
  end)
end)
