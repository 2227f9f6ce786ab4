local per_session = require('mcp-tools.util.session').keep
local t = require('helpers')

describe('a value for each session', function()
  it('is that of the session, else of the name, and shared by clients without either', function()
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
end)
