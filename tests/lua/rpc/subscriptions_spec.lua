-- every Neovim
local Registry = require('mcp-tools.registry.store')
local Subscriptions = require('mcp-tools.rpc.subscriptions')
local resource = require('mcp-tools.calls.kinds.resource')
local t = require('helpers')

local registry, subscriptions, sent, watches

local function now() return vim.uv.hrtime() / 1e6 end

local function define(uri, watch)
  assert(registry:add('resources', { uri = uri, name = 'n', read = function() end, watch = watch }))
end

before_each(function()
  registry, sent, watches = Registry.new(), {}, { started = 0, ended = 0 }
  subscriptions = Subscriptions.new({
    find = function(uri) return resource.find(registry, uri) end,
    send = function(channel, uri) table.insert(sent, { channel = channel, uri = uri, at = now() }) end,
  })
  define('x://y', function(changed)
    watches.started = watches.started + 1
    watches.changed = changed
    return function() watches.ended = watches.ended + 1 end
  end)
end)

after_each(function()
  for channel = 1, 5 do
    subscriptions:release(channel)
  end
end)

describe('a subscription', function()
  it('watches from the first to the last subscriber', function()
    subscriptions:subscribe(1, 'x://y')
    subscriptions:subscribe(1, 'x://y')
    subscriptions:subscribe(2, 'x://y')
    t.eq(1, watches.started)
    t.ok(subscriptions:unsubscribe(1, 'x://y') and subscriptions:unsubscribe(2, 'x://y'))
    t.eq(0, watches.ended)
    t.ok(subscriptions:unsubscribe(1, 'x://y'))
    t.eq({ 1, false }, { watches.ended, (subscriptions:unsubscribe(1, 'x://y')) })
    t.eq(false, subscriptions:any())
  end)

  it('ends with its channel', function()
    subscriptions:subscribe(1, 'x://y')
    subscriptions:subscribe(2, 'x://y')
    subscriptions:release(1)
    t.eq(0, watches.ended)
    watches.changed()
    t.wait(function() return #sent == 1 end)
    t.eq(2, sent[1].channel)
    subscriptions:release(2)
    t.eq({ 1, false, {} }, { watches.ended, subscriptions:any(), subscriptions.per_channel })
    watches.changed()
    vim.wait(20)
    t.eq(1, #sent)
  end)

  it('is refused for a resource that cannot be read', function()
    t.eq('not_found', subscriptions:subscribe(1, 'x://z').code)
    t.eq(false, subscriptions:any())
  end)

  it('is limited in number for each channel', function()
    local max = Subscriptions.MAX_URIS
    Subscriptions.MAX_URIS = 2
    define('x://2')
    define('x://3')
    t.eq({ nil, nil }, { subscriptions:subscribe(1, 'x://y'), (subscriptions:subscribe(1, 'x://2')) })
    t.eq(nil, subscriptions:subscribe(1, 'x://2'))
    local err = subscriptions:subscribe(1, 'x://3')
    Subscriptions.MAX_URIS = max
    t.eq({ 'busy', nil }, { err.code, (subscriptions:subscribe(2, 'x://3')) })
  end)

  it('follows its definition', function()
    subscriptions:subscribe(1, 'x://y')
    local again = 0
    define('x://y', function() again = again + 1 end)
    subscriptions:refresh()
    t.eq({ 1, 1 }, { watches.ended, again })
    t.wait(function() return #sent == 1 end)
    registry:remove('resources', 'x://y')
    subscriptions:refresh()
    subscriptions:refresh()
    t.eq(true, subscriptions:any())
  end)

  it('survives a watch that throws', function()
    define('x://bad', function() error('oh') end)
    t.eq(nil, subscriptions:subscribe(1, 'x://bad'))
    subscriptions:notify('x://bad')
    t.wait(function() return #sent == 1 end)
  end)
end)

describe('a change', function()
  it('is reported immediately, then at most five times a second, including the last one', function()
    subscriptions:subscribe(1, 'x://y')
    local started = now()
    watches.changed()
    t.wait(function() return #sent == 1 end)
    t.ok(sent[1].at - started < 200)
    local last
    while now() - started < 1000 do
      watches.changed()
      last = now()
      vim.wait(2)
    end
    local before = #sent
    t.wait(function() return sent[#sent].at >= last end)
    t.ok(before >= 4 and before <= 6, before .. ' in a second')
    t.ok(sent[#sent].at - last <= 250, ('the last one after %d ms'):format(sent[#sent].at - last))
    for i = 2, #sent do
      t.ok(sent[i].at - sent[i - 1].at >= 195, ('%.1f ms'):format(sent[i].at - sent[i - 1].at))
    end
    local count = #sent
    vim.wait(300)
    t.eq(count, #sent)
  end)

  it('by notify reaches the subscribers of that URI', function()
    define('x://other')
    subscriptions:subscribe(1, 'x://y')
    subscriptions:subscribe(2, 'x://other')
    subscriptions:notify('x://other')
    subscriptions:notify('x://nobody')
    t.wait(function() return #sent > 0 end)
    t.eq({ 1, 2, 'x://other' }, { #sent, sent[1].channel, sent[1].uri })
  end)
end)

it('many changes of the registry cost one refresh per turn of the event loop', function()
  for i = 1, 3000 do
    define('x://many/' .. i)
    assert(not subscriptions:subscribe(1, 'x://many/' .. i))
  end
  define('x://many/1', function() watches.started = watches.started + 1 end)
  subscriptions:refresh()
  t.wait(function() return subscriptions.due == nil end)
  t.eq(1, watches.started)
end)
