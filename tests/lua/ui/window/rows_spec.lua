-- every Neovim
-- What a narrow dashboard does with long texts: names give way, details go on in the next row.

local Rows = require('mcp-tools.ui.window.rows')
local t = require('helpers')

describe('long texts of the dashboard', function()
  it('break between words, and where there is none', function()
    t.eq({ 'one two', 'three' }, Rows.broken('one two three', 8))
    t.eq({ 'one two', 'three' }, Rows.broken('one two three', 7))
    t.eq({ 'abcd', 'efgh', 'ij k' }, Rows.broken('abcdefghij k', 4))
    t.eq({ 'äöü', 'ßé' }, Rows.broken('äöü  ßé', 4))
    t.eq({ '' }, Rows.broken('', 4))
  end)

  it('leave room for what stands behind the name of a client', function()
    local name = ('a-client-with-a-long-name'):rep(2)
    local rows = Rows.new(76)
    local clients = vim
      .iter(require('mcp-tools.ui.dashboard.calls'))
      :find(function(section) return section.title == 'Clients' end)
    clients.rows(rows, {
      bridge = function()
        return { sessions = { clients = { { name = name, version = '1.2.3', transport = 'http' } } } }
      end,
      executor = {
        history = {
          last_of = function(asked) return asked == name and vim.uv.hrtime() or nil end,
        },
      },
    })
    t.matches('  ●  a%-client%-with%-a%-.*…  1%.2%.3  http  last call 0 s ago$', rows.list[1].text)
  end)
end)
