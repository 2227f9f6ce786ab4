local t = require('helpers')
local garbage = require('mcp-tools.util.garbage')

describe('garbage.without', function()
  it('hands on what the function takes, gives and throws, and the collector runs again', function()
    t.eq('a,b', garbage.without(table.concat, { 'a', 'b' }, ','))
    local ok, thrown = pcall(garbage.without, error, { 'a table' })
    t.eq({ false, { 'a table' } }, { ok, thrown })
    t.ok(not jit or collectgarbage('isrunning'))
  end)

  it('collects nothing meanwhile, and leaves a collector that somebody has stopped alone', function()
    if not jit then
      return
    end
    t.eq(false, garbage.without(function() return collectgarbage('isrunning') end))
    collectgarbage('stop')
    garbage.without(function() end)
    local running = collectgarbage('isrunning')
    collectgarbage('restart')
    t.ok(not running, 'started by us')
  end)
end)
