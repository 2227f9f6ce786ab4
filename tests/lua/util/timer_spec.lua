local t = require('helpers')
local timer = require('mcp-tools.util.timer')

local function busy(ms)
  local till = vim.uv.hrtime() + ms * 1e6
  while vim.uv.hrtime() < till do
  end
end

describe('a timer', function()
  it('calls once, on the main loop, not before its time, even after the editor was busy', function()
    local calls, fast, called_at = 0, nil, nil
    busy(50)
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
      busy(10)
      running:stop()
    end)
    vim.wait(40)
    t.eq(false, called)
  end)
end)
