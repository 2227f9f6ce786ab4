-- every Neovim
-- Long texts in a narrow dashboard: names are truncated, details continue in the next row.

local Rows = require('mcp-tools.ui.window.rows')
local t = require('helpers')

it('a wrapped line continues after a word, or anywhere if the row would be half empty', function()
  local rows = Rows.new(12, true)
  rows:line('one two three four five', { { 5, 13, 'Name' } }, true)
  rows:line('a bcdefghijklmno', nil, true)
  rows:line('one   two three', nil, true)
  t.eq(
    { 'one two', '↪ three four', '↪ five', 'a bcdefghijk', '↪ lmno', 'one   two', '↪ three' },
    vim.tbl_map(function(row) return row.text end, rows.list)
  )
  local actual = { rows.list[1].marks, rows.list[2].marks, rows.list[3].marks }
  t.eq({ { { 4, 7, 'Name' } }, { { 4, 9, 'Name' } }, {} }, actual)
end)

describe('long texts of the dashboard', function()
  it('are broken between words, or anywhere in a long word', function()
    t.eq({ 'one two', 'three' }, Rows.broken('one two three', 8))
    t.eq({ 'one two', 'three' }, Rows.broken('one two three', 7))
    t.eq({ 'abcd', 'efgh', 'ij k' }, Rows.broken('abcdefghij k', 4))
    t.eq({ { 'äöü', 'ßé' }, { '' } }, { Rows.broken('äöü  ßé', 4), (Rows.broken('', 4)) })
  end)

  it('leave room for the text after the name of a client', function()
    local name = ('a-client-with-a-long-name'):rep(2)
    local rows = Rows.new(76)
    local sections = vim.iter(require('mcp-tools.ui.dashboard.calls'))
    local clients = sections:find(function(section) return section.title == 'Clients' end)
    local function client(transport, key) return { name = name, version = '1.2.3', transport = transport, key = key } end
    local sessions = { clients = { client('sse', 'k1'), client('http', 'k2') } }
    local history = { last_of = function(key) return key == 'k1' and vim.uv.hrtime() or nil end }
    clients.rows(rows, { bridge = t.returns({ sessions = sessions }), executor = { history = history } })
    t.matches('  ●  a%-client%-with%-a%-.*…  1%.2%.3  sse  last call 0 s ago$', rows.list[1].text)
    t.matches('  ●  a%-client%-with%-a%-.*…  1%.2%.3       no call yet$', rows.list[2].text)
  end)
end)
