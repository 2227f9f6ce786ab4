local lru = require('mcp-tools.util.lru')
local t = require('helpers')

describe('a bounded cache', function()
  it('keeps what was used last, and not more than twice its size', function()
    local cache, kept = lru(10), 0
    cache:set('used', true)
    for i = 1, 100 do
      cache:set(i, i)
      t.ok(cache:get('used'))
    end
    for i = 1, 100 do
      kept = kept + (cache:get(i) and 1 or 0)
      t.eq(i > 91, i > 91 and cache:get(i) == i)
    end
    t.ok(kept < 20)
  end)

  it('replaces and removes values', function()
    local cache = lru(2)
    cache:set('a', 1)
    cache:set('a', 2)
    t.eq(2, cache:get('a'))
    cache:set('a', nil)
    t.eq(nil, cache:get('a'))
    cache:set('b', 1)
    cache:set('c', 1)
    cache:set('d', 1)
    t.eq({ 1, 1, 1 }, { cache:get('b'), cache:get('c'), cache:get('d') })
    cache:set('b', nil)
    t.eq(nil, cache:get('b'))
  end)
end)
