local Call = require('mcp-tools.calls.call')
local t = require('helpers')

local EVENTS = { 'ask', 'start', 'await_input', 'input', 'finish', 'fail', 'time_out', 'cancel' }

--- state × event, a copy of the table: a change must be intended.
local EXPECTED = {
  received = { ask = 'waiting_approval', start = 'running', fail = 'failed', cancel = 'cancelled' },
  waiting_approval = {
    await_input = 'waiting_approval',
    input = 'waiting_approval',
    start = 'running',
    fail = 'failed',
    cancel = 'cancelled',
  },
  running = {
    await_input = 'waiting_input',
    finish = 'done',
    fail = 'failed',
    time_out = 'timed_out',
    cancel = 'cancelled',
  },
  waiting_input = { input = 'running', finish = 'done', fail = 'failed', time_out = 'timed_out', cancel = 'cancelled' },
  done = {},
  failed = {},
  timed_out = {},
  cancelled = {},
}

local function call_in(state)
  local call = Call.new({ id = 'x-1', name = 'x', host = 'test' })
  call.state = state
  return call
end

describe('the state table of a call', function()
  for state, moves in pairs(EXPECTED) do
    for _, event in ipairs(EVENTS) do
      it(('%s × %s → %s'):format(state, event, moves[event] or 'nothing'), function()
        local call = call_in(state)
        t.eq({ moves[event] ~= nil, moves[event] or state }, { call:move(event), call.state })
      end)
    end
    it(
      ('%s has ended only when nothing can follow'):format(state),
      function() t.eq(next(moves) == nil, call_in(state):ended()) end
    )
  end
end)

describe('a call', function()
  it('ends once; a second end is ignored', function()
    local ends = 0
    local call = call_in('running')
    call.listener = { done = function() ends = ends + 1 end }
    t.eq(true, call:finish('finish', { value = 1 }))
    t.eq({ false, false, 1 }, { call:finish('finish', { value = 2 }), (call:cancel('user')), ends })
    t.eq(1, call.outcome.value)
  end)

  it('runs its hooks on a cancel, with the reason, even when one of them throws', function()
    local seen = {}
    local call = call_in('running')
    call:on_cancel(function() error('a bad hook') end)
    call:on_cancel(function(reason) table.insert(seen, reason) end)
    call:cancel('client')
    t.eq({ { 'client' }, 'cancelled' }, { seen, call.outcome.error.code })
    call:on_cancel(function(reason) table.insert(seen, 'late ' .. reason) end)
    t.eq({ 'client', 'late client' }, seen)
  end)

  it('runs its hooks on a timeout and not on a result', function()
    local seen = {}
    local timed, done = call_in('running'), call_in('running')
    for _, call in ipairs({ timed, done }) do
      call:on_cancel(function(reason) table.insert(seen, reason) end)
    end
    timed:time_out(50)
    done:finish('finish', {})
    t.eq({ { 'timeout' }, 'timeout' }, { seen, timed.outcome.error.code })
  end)

  it('survives an error of its listener', function()
    local call = call_in('running')
    call.listener = { done = function() error('a bad listener') end }
    t.eq({ true, 'done' }, { call:finish('finish', { value = 1 }), call.state })
  end)

  it('counts progress, and ignores it after the end', function()
    local call = call_in('running')
    call:progress(1, 3)
    call:progress(2, 3, 'half')
    call:finish('finish', {})
    call:progress(3, 3)
    t.eq({ seq = 2, done = 2, total = 3, message = 'half' }, call.latest)
  end)
end)
