local lru = require('mcp-tools.util.lru')
local sort = require('mcp-tools.util.sort')
local t = require('helpers')

describe('a bounded cache', function()
  it('keeps the last used values, at most twice its size', function()
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

local function before(a, b) return a.key < b.key end

---@param count integer
local function scrambled(count)
  local list = t.list(count, function(i) return { key = i * 7919 % 1009, at = i } end)
  return list
end

describe('a long list', function()
  it('is sorted like table.sort, with pauses', function()
    for _, count in ipairs({ 0, 1, 2, 999, 1000, 1001, 2000, 2500, 5001 }) do
      local wanted, pauses = scrambled(count), 0
      table.sort(wanted, before)
      local got = sort(scrambled(count), before, function() pauses = pauses + 1 end)
      t.eq(count, #got)
      for i = 1, count do
        t.eq(wanted[i].key, got[i].key)
      end
      t.ok(pauses >= math.floor(count / 1000), ('%d pauses for %d'):format(pauses, count))
    end
  end)

  it('is returned unchanged when it is sorted', function()
    local list = { { key = 1 }, { key = 1 }, { key = 2 } }
    t.ok(rawequal(list, sort(list, before, error)))
  end)
end)
