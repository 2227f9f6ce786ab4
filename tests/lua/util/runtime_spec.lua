-- Timers, the garbage collector, and values for each session.

local garbage = require('mcp-tools.util.garbage')
local per_session = require('mcp-tools.util.session').keep
local t = require('helpers')
local timer = require('mcp-tools.util.timer')

describe('a timer', function()
  it('calls once, on the main loop, not before its time, even after the editor was busy', function()
    local calls, fast, called_at = 0, nil, nil
    vim.uv.sleep(50)
    local begun = vim.uv.hrtime()
    local running = timer.after(30, function()
      calls, fast, called_at = calls + 1, vim.in_fast_event(), vim.uv.hrtime()
    end)
    t.eq(true, running:is_running())
    t.wait(function() return called_at end)
    t.ok(called_at - begun >= 30e6)
    vim.wait(60)
    t.eq({ 1, false, false }, { calls, fast, running:is_running() })
  end)

  it('calls repeatedly until it is stopped, once or twice', function()
    local calls = 0
    local running = timer.every(5, function() calls = calls + 1 end)
    t.wait(function() return calls > 2 end)
    running:stop()
    running:stop()
    local seen = calls
    vim.wait(30)
    t.eq({ seen, false }, { calls, running:is_running() })
  end)

  it('does not call when it is stopped before the editor handles it', function()
    local called = false
    local running = timer.after(1, function() called = true end)
    vim.schedule(function()
      vim.uv.sleep(10)
      running:stop()
    end)
    vim.wait(40)
    t.eq(false, called)
  end)
end)

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

it('a value for each session is that of the session, else of the name, and shared by clients without either', function()
  local count = 0
  local value_of = per_session(function()
    count = count + 1
    return count
  end)
  local function of(session, name, host)
    return { value_of({ session = session, client = { name = name }, host = host or 'mcp' }) }
  end
  t.eq({ { 1, true }, { 2, true }, { 1, true } }, { of('a', 'x'), of('b', 'x'), of('a', 'y') })
  t.eq({ { 3, true }, { 3, true } }, { of(nil, 'x'), of(nil, 'x') })
  t.eq({ { 4, false }, { 4, false }, { 5, true } }, { of(nil, ''), of(nil, nil), of(nil, nil, 'lua') })
end)
