-- every Neovim
local plain = require('mcp-tools.util.terminal_text').plain
local sanitize = require('mcp-tools.util.sanitize')
local strings = require('mcp-tools.util.strings')
local substring = require('mcp-tools.util.substring')
local t = require('helpers')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

describe('strings', function()
  it('are split into parts', function()
    for name, cases in pairs({
      last_line = { ['a\nb\nc'] = 'c', ['a\n'] = '', a = 'a' },
      whole_lines = { ['a\nb\nc'] = 'a\nb\n', a = '' },
      trim_end = { ['  a \n\t'] = '  a', [' \n'] = '' },
      last_word = { ['M.ärger_1'] = 'ärger_1', all = 'all', ['f('] = '' },
      directory = { ['/a'] = '/a/', ['/a/'] = '/a/', ['/a//'] = '/a/', ['/'] = '/' },
    }) do
      for text, wanted in pairs(cases) do
        t.eq({ name, text, wanted }, { name, text, strings[name](text) })
      end
    end
    t.eq({ 'a', '', 'b' }, vim.iter(strings.each_ended('a\0\0b\0c', '\0')):totable())
    t.eq({}, vim.iter(strings.each_ended('a', '\n')):totable())
    t.eq('a / b / c', strings.join_lines('a \n\n  b\r\n\tc\n', ' / '))
    t.eq(' one line ', strings.join_lines(' one line ', ' / '))
    for given, wanted in pairs({ [''] = '', [' \t\n'] = '', ['a'] = 'a', ['  a b\n'] = 'a b', ['a '] = 'a' }) do
      t.eq(wanted, trim(given))
    end
  end)

  it('have their characters counted and replaced, also in slices', function()
    local pauses = 0
    local function pause() pauses = pauses + 1 end
    local text = ('a'):rep(32767) .. ('\r\n'):rep(40000) .. '\r\r\n%'
    t.eq(40001, strings.count(text, '\n', pause))
    t.eq((text:gsub('\r\n', '\n')), strings.replace_all(text, '\r\n', '\n', pause))
    t.eq((text:gsub('\r\n', '%%%%')), strings.replace_all(text, '\r\n', '%%'))
    t.eq(text, strings.replace_all(text, 'b', 'c', pause))
    t.ok(pauses > 4)
  end)

  it('are processed in linear time', function()
    local begun = os.clock()
    local long, blank = ('a'):rep(200000), (' '):rep(200000)
    t.eq({ '', '' }, { trim(blank), (strings.last_line(long .. '\n')) })
    t.eq({ long, '' }, { strings.last_line(long), (strings.last_word(long .. '(')) })
    t.eq('a' .. blank .. 'b', strings.trim_end('a' .. blank .. 'b' .. blank))
    t.eq('a;b', strings.join_lines(blank .. 'a' .. blank .. '\n' .. blank .. '\n' .. blank .. 'b', ';'))
    t.eq(0, #vim.iter(strings.each_ended(long, '\n')):totable())
    t.ok(os.clock() - begun < 10)
  end)
end)

describe('text in text', function()
  it('is found like string.find does', function()
    math.randomseed(7)
    for _ = 1, 2000 do
      local text = t.list(math.random(0, 400), function() return math.random() < 0.97 and 'a' or 'b' end)
      text = table.concat(text)
      local at = math.random(1, math.max(#text, 1))
      local needle = math.random() < 0.5 and text:sub(at, at + math.random(60, 200)) or ('a'):rep(80) .. 'b'
      if needle ~= '' then
        local from = math.random(1, #text + 1)
        t.eq({ text:find(needle, from, true) }, { substring.finder(needle)(text, from) })
      end
    end
  end)

  it('is found in linear time in a repetitive text', function()
    local needle, text = ('a'):rep(400000) .. 'b', ('a'):rep(3000000)
    t.eq({}, { t.fast(substring.finder(needle), text, 1) })
  end)

  it('is found in linear time by an edit and by a search', function()
    local needle, text = ('a'):rep(400000) .. 'b', ('a'):rep(3000000)
    local began = vim.uv.hrtime()
    local edits = { { old_text = needle, new_text = '' } }
    t.fails('not_found', nil, require('mcp-tools.editor.text.search_replace').edits({ text }, edits, { brief = true }))
    local search = require('mcp-tools.editor.search')
    search.matcher({ query = needle }):each(text, error, error)
    local matcher = search.matcher({ query = ('a'):rep(400000) .. '\nb' })
    for _ = 1, 100 do
      matcher:each('a short text\n', error, error)
    end
    t.ok((vim.uv.hrtime() - began) / 1e6 < 10000)
  end)
end)

describe('text for a terminal', function()
  it('loses colors, titles and links only', function()
    t.eq('plain äö\ttext\n', plain('plain äö\ttext\n'))
    t.eq('red bold', plain('\27[31mred\27[0m \27[1;38;5;9mbold\27[m'))
    t.eq('title', plain('\27]0;some window\7title'))
    t.eq('link', plain('\27]8;;https://example.org\27\\link\27]8;;\27\\'))
    t.eq({ 'ab', 'bell nul' }, { plain('a\27(Bb\27='), (plain('bell\7 nul\0')) })
  end)

  it('is what the terminal shows in the end', function()
    t.eq('100 %\nnext', plain('10 %\r50 %\r100 %\r\nnext'))
    t.eq({ 'bold', 'an end 3' }, { plain('b\8bo\8ol\8ld\8d'), (plain('an end \27[3')) })
    t.eq({ 'äö', 'b' }, { plain('a\8äu\8ö'), (plain('\8\8a\8\8\8b')) })
  end)

  it('is processed in linear time', function()
    t.eq('done', t.fast(plain, ('0'):rep(200000) .. '\rdone'))
    t.eq(200000, #t.fast(plain, ('0'):rep(200000) .. '\r'))
    t.eq('', t.fast(plain, ('a'):rep(100000) .. ('\8'):rep(100000)))
    t.eq(100000, #t.fast(plain, ('\r'):rep(100000) .. ('a'):rep(100000)))
  end)

  it('is processed with pauses in a long line', function()
    local pauses = 0
    plain(('ab\8'):rep(20000), function() pauses = pauses + 1 end)
    t.ok(pauses > 10)
  end)
end)

describe('visible text', function()
  it('is unchanged without hidden characters', function()
    for _, text in ipairs({ '', 'plain <text>', 'é ü ß', '漢字かな', 'עברית', 'עربي', '😀', '' }) do
      t.eq(text, sanitize.line(text))
    end
  end)

  it('names characters that are invisible, reorder text or look like nothing', function()
    for code, text in pairs({
      ['<U+0000>'] = '\0',
      ['<U+000A>'] = '\n',
      ['<U+001B>'] = '\27',
      ['<U+007F>'] = '\127',
      ['<U+0085>'] = '\194\133',
      ['<U+00A0>'] = '\194\160',
      ['<U+00AD>'] = '\194\173',
      ['<U+061C>'] = '\216\156',
      ['<U+200B>'] = '\226\128\139',
      ['<U+200F>'] = '\226\128\143',
      ['<U+2028>'] = '\226\128\168',
      ['<U+202E>'] = '\226\128\174',
      ['<U+2066>'] = '\226\129\166',
      ['<U+2800>'] = '\226\160\128',
      ['<U+3164>'] = '\227\133\164',
      ['<U+FE0F>'] = '\239\184\143',
      ['<U+FEFF>'] = '\239\187\191',
      ['<U+E0041>'] = '\243\160\129\129',
      ['<FF>'] = '\255',
      ['<C0><80>'] = '\192\128',
      ['<ED><A0><80>'] = '\237\160\128',
    }) do
      t.eq('a' .. code .. 'b', sanitize.line('a' .. text .. 'b'))
    end
  end)

  it(
    'keeps lines and shows the rest',
    function() t.eq({ 'a    b', '', 'c<U+000D>' }, sanitize.lines('a\tb\n\nc\r')) end
  )

  it(
    'comes to an end with many bytes that are not text',
    function() t.eq('string', type(sanitize.line(('\255'):rep(64 * 1024)))) end
  )
end)

it('UTF-8 is checked the same in long text, wherever the invalid byte is', function()
  for _, length in ipairs({ 4090, 4095, 4096, 4097, 4099, 9000 }) do
    local text = ('x'):rep(length)
    t.eq({ nil, { text, false } }, { utf8.invalid_at(text), { utf8.repair(text) } })
    for _, place in ipairs({ 1, 2, 3, 4, 5, 1000, length - 3, length - 2, length - 1, length }) do
      local bad = text:sub(1, place - 1) .. '\255' .. text:sub(place + 1)
      t.eq(place, utf8.invalid_at(bad))
      local good = text:sub(1, place - 1) .. 'é' .. text:sub(place)
      t.eq({ nil, #good + 1 }, { utf8.invalid_at(good), (utf8.invalid_at(good .. '\192')) })
    end
  end
end)

it('a text in pieces is valid UTF-8 exactly when the whole text is', function()
  local texts = {
    'plain',
    'aé€😀z',
    'a\255b',
    'caf\233',
    '\195',
    '\226\130',
    '\240\159\152',
    '\195(',
    'é\128',
    '\237\160\128',
  }
  for _, whole in ipairs(texts) do
    for size = 1, #whole do
      local check = utf8.checker()
      for at = 1, #whole, size do
        check(whole:sub(at, at + size - 1))
      end
      local ok = check('', true)
      t.eq({ whole, size, utf8.invalid_at(whole) == nil }, { whole, size, ok })
    end
  end
end)
