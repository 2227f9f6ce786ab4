local Channel = require('mcp-tools.rpc.channel')
local Call = require('mcp-tools.calls.call')
local t = require('helpers')

local MIB = 1024 * 1024

--- A channel that notes what goes out.
local function channel()
  local sent, one = {}, Channel.new(0)
  one.emit = function(_, event, ...)
    table.insert(sent, { event, ... })
    return true
  end
  return one, sent
end

local function running(listener)
  local call = Call.new({ id = 'x', name = 'x', host = 'test', listener = listener })
  call:move('start')
  return call
end

describe('what a tool tells while it runs', function()
  it('is cut where a log message is large', function()
    for _, data in ipairs({ ('ä'):rep(MIB), { lines = { ('x'):rep(2 * MIB) } } }) do
      local one, sent = channel()
      running(one):tell('log', 'info', data)
      t.eq(1, #sent)
      local text = vim.json.decode(sent[1][4])
      t.ok(#sent[1][4] < 66 * 1024, #sent[1][4])
      t.matches('cut: 65536 of %d+ bytes', text)
    end
    local one, sent = channel()
    running(one):tell('log', 'info', { 'short' })
    t.eq('["short"]', sent[1][4])
  end)

  it('is cut where the message of progress or a state is large', function()
    local one, sent = channel()
    local call = running(one)
    call:progress(1, 2, ('ä'):rep(MIB))
    t.ok(#call.latest.message < 4200)
    t.matches('cut: 4096 of 2097152 bytes', call.latest.message)
    call:tell('state', { ('x'):rep(MIB) })
    t.eq(nil, call.latest.state)
    t.ok(#call.latest.message < 4200)
    t.ok(#sent > 0)
  end)
end)
