local t = require('helpers')
local trim = require('mcp-tools.util.trim')

describe('trim', function()
  it('takes away the blanks around a text, and nothing else', function()
    for given, wanted in pairs({ [''] = '', [' \t\n'] = '', ['a'] = 'a', ['  a b\n'] = 'a b', ['a '] = 'a' }) do
      t.eq(wanted, trim(given))
    end
  end)

  it('takes time that grows with the text, also where all of it is blank', function()
    local begun = os.clock()
    t.eq('', trim((' '):rep(2 ^ 20)))
    t.ok(os.clock() - begun < 1)
  end)
end)
