local t = require('helpers')
local garbage = require('mcp-tools.util.garbage')

describe('garbage.without', function()
  it('passes arguments, results and errors, and the collector runs again', function()
    t.eq('a,b', garbage.without(table.concat, { 'a', 'b' }, ','))
    local ok, thrown = pcall(garbage.without, error, { 'a table' })
    t.eq({ false, { 'a table' } }, { ok, thrown })
    t.ok(not jit or collectgarbage('isrunning'))
  end)

  it('collects nothing inside, and does not start a stopped collector', function()
    if not jit then
      return
    end
    t.eq(false, garbage.without(function() return collectgarbage('isrunning') end))
    collectgarbage('stop')
    garbage.without(function() end)
    local running = collectgarbage('isrunning')
    collectgarbage('restart')
    t.ok(not running)
  end)
end)
