local UsedIds = require('mcp-tools.call.used_ids')
local t = require('helpers')

describe('used ids', function()
  it('are known as long as promised, and not for ever', function()
    local ids = UsedIds.new(10)
    for i = 1, 100 do
      ids:add('a' .. i)
      ids:add('a' .. i)
      for back = 0, 9 do
        t.eq(i > back, ids:has('a' .. (i - back)))
      end
      t.eq(false, ids:has('a' .. (i - 20)))
      t.eq(false, ids:has('b' .. i))
    end
  end)

  it('cost the same however many there were', function()
    local ids = UsedIds.new(1024)
    local function time(from)
      local begun = vim.uv.hrtime()
      for i = from, from + 1023 do
        ids:add('x-' .. i)
      end
      return (vim.uv.hrtime() - begun) / 1024e3
    end
    local best = math.huge
    for round = 1, 20 do
      best = math.min(best, time(round * 1024))
    end
    t.ok(best < 5, ('an id costs %.1f µs'):format(best))
  end)
end)
