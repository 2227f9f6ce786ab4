local kinds = require('mcp-tools.registry.kinds')
local t = require('helpers')

--- A kind that there is not: one row, and a module that knows what a definition of it is.
table.insert(kinds.rows, 1, {
  kind = 'songs',
  option = 'songs',
  key = 'title',
  what = 'song',
  heading = 'songs',
  label = "song '%s'",
  definition = 'song_definition',
  alike = string.lower,
})
package.loaded.song_definition = {
  normalise = function(def)
    if not def.play then
      return nil, ("song '%s': play: is required"):format(tostring(def.title))
    end
    return { key = def.title, name = def.title, handler = def.play, lint = {}, typos = {}, repairs = {} }
  end,
  published = function(def)
    return { title = def.name }
  end,
}

local Registrations = require('mcp-tools.registry.registrations')
local core = require('mcp-tools.core')
local wire = require('mcp-tools.rpc')

local function song(title)
  return { title = title, play = function() end }
end

local function registry()
  return core.get().registry
end

local function listed()
  return vim.json.decode(wire.list('songs').json)
end

describe('a kind with a row of its own', function()
  after_each(function()
    registry():clear('songs')
  end)

  it('is taken in, listed to clients, and taken out', function()
    local heard = {}
    local stop = registry():on_change(function(kind, revision)
      table.insert(heard, { kind, revision })
    end)
    t.ok(registry():add('songs', song('b')))
    t.ok(registry():add('songs', song('a')))
    t.eq({ { title = 'a' }, { title = 'b' } }, listed())
    t.eq(true, registry():remove('songs', 'b'))
    t.eq(false, registry():remove('songs', 'b'))
    t.eq({ { title = 'a' } }, listed())
    t.eq({ { 'songs', 1 }, { 'songs', 2 }, { 'songs', 3 } }, heard)
    t.eq({ unchanged = true, revision = 3 }, { unchanged = wire.list('songs', 3).unchanged, revision = 3 })
    stop()
  end)

  it('is refused by its own rules, and health is told', function()
    local _, fault = registry():add('songs', { title = 'x' })
    t.eq("song 'x': play: is required", fault)
    t.eq({ source = "song 'x'", error = fault }, require('mcp-tools').report().failures[1])
    registry():add('songs', song('X'))
    _, fault = registry():add('songs', song('x'))
    t.matches("cannot distinguish it from 'X'", fault)
  end)

  it('is shown to people and switched by its option', function()
    registry():add('songs', song('a'))
    local item = vim.iter(require('mcp-tools.groups').items()):find(function(each)
      return each.kind == 'songs'
    end)
    t.eq({ kind = 'songs', name = 'a', on = true, loadable = false }, item)
    t.eq({ 'songs', 'songs/a' }, {
      vim.iter(require('mcp-tools.groups').names()):find('songs'),
      vim.iter(require('mcp-tools.groups').names()):find('songs/a'),
    })
    t.ok(vim.list_contains(kinds.options(), 'songs'))
  end)

  it('is held by places', function()
    local place, other = Registrations.new('songs', vim.uv.cwd), Registrations.new('songs', vim.uv.cwd)
    local function source()
      return { origin = 'registered' }
    end
    t.eq({}, place:replace(registry(), { song('a'), song('b') }, source))
    t.matches("song 'a': title: it is taken by", other:replace(registry(), { song('a') }, source)[1])
    t.eq({}, place:replace(registry(), { song('b') }, source))
    t.eq({}, other:replace(registry(), { song('a') }, source))
    place:keep(registry())
    t.eq({ { title = 'a' } }, listed())
  end)
end)

describe('the kinds', function()
  it('that share an option are told apart by the key of a definition', function()
    t.eq('resources', kinds.sort('resources', { uri = 'x://y' }).kind)
    t.eq('templates', kinds.sort('resources', { uri_template = 'x://{y}' }).kind)
    t.eq('resources', kinds.sort('templates', { uri = 'x://y' }).kind)
    t.eq('resources', kinds.sort('resources', {}).kind)
    t.eq('tools', kinds.sort('tools', 'nonsense').kind)
    t.raises("unknown kind 'nothing'", function()
      kinds.row('nothing')
    end)
  end)
end)
