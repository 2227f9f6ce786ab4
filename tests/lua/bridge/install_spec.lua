local install = require('mcp-tools.bridge.install')
local t = require('helpers')

describe('an installation', function()
  it('tells all who wait for it, whoever of them throws', function()
    local heard = {}
    install.on_done(function()
      error('a fault of the first')
    end)
    install.on_done(function()
      table.insert(heard, 'second')
    end)
    vim.v.errmsg = ''
    install.notify_done()
    t.eq({ 'second' }, heard)
    t.eq('', vim.v.errmsg)
  end)
end)
