local strings = require('mcp-tools.util.strings')
local t = require('helpers')

describe('strings', function()
  it('gives the last line and the whole lines of a text', function()
    t.eq('c', strings.last_line('a\nb\nc'))
    t.eq('', strings.last_line('a\n'))
    t.eq('a', strings.last_line('a'))
    t.eq('a\nb\n', strings.whole_lines('a\nb\nc'))
    t.eq('', strings.whole_lines('a'))
  end)

  it('iterates over parts that are ended', function()
    t.eq({ 'a', '', 'b' }, vim.iter(strings.each_ended('a\0\0b\0c', '\0')):totable())
    t.eq({}, vim.iter(strings.each_ended('a', '\n')):totable())
  end)

  it('trims the end alone', function()
    t.eq('  a', strings.trim_end('  a \n\t'))
    t.eq('', strings.trim_end(' \n'))
  end)

  it('gives the word at the end', function()
    t.eq('ärger_1', strings.last_word('M.ärger_1'))
    t.eq('all', strings.last_word('all'))
    t.eq('', strings.last_word('f('))
  end)

  it('ends a directory with one slash', function()
    t.eq({ '/a/', '/a/', '/a/', '/' }, vim.tbl_map(strings.directory, { '/a', '/a/', '/a//', '/' }))
  end)

  it('joins lines', function()
    t.eq('a / b / c', strings.join_lines('a \n\n  b\r\n\tc\n', ' / '))
    t.eq(' one line ', strings.join_lines(' one line ', ' / '))
  end)

  it('counts and replaces characters, also between two pieces of work', function()
    local pauses = 0
    local function pause()
      pauses = pauses + 1
    end
    local text = ('a'):rep(32767) .. ('\r\n'):rep(40000) .. '\r\r\n%'
    t.eq(40001, strings.count(text, '\n', pause))
    t.eq((text:gsub('\r\n', '\n')), strings.replace_all(text, '\r\n', '\n', pause))
    t.eq((text:gsub('\r\n', '%%%%')), strings.replace_all(text, '\r\n', '%%'))
    t.eq(text, strings.replace_all(text, 'b', 'c', pause))
    t.ok(pauses > 4)
  end)

  it('takes time that grows with the length of a text', function()
    local begun = vim.uv.hrtime()
    local long, blank = ('a'):rep(200000), (' '):rep(200000)
    t.eq('', strings.last_line(long .. '\n'))
    t.eq(long, strings.last_line(long))
    t.eq('', strings.last_word(long .. '('))
    t.eq('a' .. blank .. 'b', strings.trim_end('a' .. blank .. 'b' .. blank))
    t.eq('a;b', strings.join_lines(blank .. 'a' .. blank .. '\n' .. blank .. '\n' .. blank .. 'b', ';'))
    t.eq(0, #vim.iter(strings.each_ended(long, '\n')):totable())
    t.ok((vim.uv.hrtime() - begun) / 1e9 < 2)
  end)
end)
