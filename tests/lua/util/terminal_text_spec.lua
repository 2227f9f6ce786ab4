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
  end)
end)
