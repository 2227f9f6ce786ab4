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
end)
