local plain = require('mcp-tools.util.terminal_text').plain
local t = require('helpers')

describe('text for a terminal', function()
  it('loses colours, titles and links, and nothing else', function()
    t.eq('plain äö\ttext\n', plain('plain äö\ttext\n'))
    t.eq('red bold', plain('\27[31mred\27[0m \27[1;38;5;9mbold\27[m'))
    t.eq('title', plain('\27]0;some window\7title'))
    t.eq('link', plain('\27]8;;https://example.org\27\\link\27]8;;\27\\'))
    t.eq('ab', plain('a\27(Bb\27='))
    t.eq('bell nul', plain('bell\7 nul\0'))
  end)

  it('is what stands there in the end', function()
    t.eq('100 %\nnext', plain('10 %\r50 %\r100 %\r\nnext'))
    t.eq('bold', plain('b\8bo\8ol\8ld\8d'))
    t.eq('an end 3', plain('an end \27[3'))
    t.eq('äö', plain('a\8äu\8ö'))
    t.eq('b', plain('\8\8a\8\8\8b'))
  end)

  it('takes time that grows with the length of a line', function()
    local begun = vim.uv.hrtime()
    t.eq('done', plain(('0'):rep(200000) .. '\rdone'))
    t.eq(200000, #plain(('0'):rep(200000) .. '\r'))
    t.eq('', plain(('a'):rep(100000) .. ('\8'):rep(100000)))
    t.eq(100000, #plain(('\r'):rep(100000) .. ('a'):rep(100000)))
    t.ok((vim.uv.hrtime() - begun) / 1e9 < 2)
  end)

  it('pauses within a long line', function()
    local pauses = 0
    plain(('ab\8'):rep(20000), function()
      pauses = pauses + 1
    end)
    t.ok(pauses > 10)
  end)
end)
