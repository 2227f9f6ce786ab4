local sort = require('mcp-tools.util.sort')
local t = require('helpers')

local function before(a, b)
  return a.key < b.key
end

---@param count integer
local function scrambled(count)
  local list = {}
  for i = 1, count do
    list[i] = { key = i * 7919 % 1009, at = i }
  end
  return list
end

describe('a long list', function()
  it('is sorted as table.sort does, with pauses', function()
    for _, count in ipairs({ 0, 1, 2, 999, 1000, 1001, 2000, 2500, 5001 }) do
      local wanted, pauses = scrambled(count), 0
      table.sort(wanted, before)
      local got = sort(scrambled(count), before, function()
        pauses = pauses + 1
      end)
      t.eq(count, #got)
      for i = 1, count do
        t.eq(wanted[i].key, got[i].key)
      end
      t.ok(pauses >= math.floor(count / 1000), ('%d pauses for %d'):format(pauses, count))
    end
  end)

  it('is given back as it is when it is sorted', function()
    local list = { { key = 1 }, { key = 1 }, { key = 2 } }
    t.ok(rawequal(list, sort(list, before, error)))
  end)
end)
