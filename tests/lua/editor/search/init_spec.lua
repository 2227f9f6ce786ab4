local files = require('mcp-tools.editor.search.files')
local fit = require('mcp-tools.editor.result.fit')
local matcher = require('mcp-tools.editor.search.matcher')
local t = require('helpers')

--- Texts that a query matches, in order.
local function matches(query, text, opts)
  local made = assert(matcher.new(vim.tbl_extend('force', { query = query, regex = true }, opts or {})))
  local found, lines = {}, vim.split(text, '\n', { plain = true })
  made:each(text, function(match)
    local first = lines[match.row + 1]:sub(match.col + 1)
    if match.end_row == match.row then
      table.insert(found, (first:sub(1, match.end_col - match.col)))
    else
      table.insert(found, first .. '⏎' .. lines[match.end_row + 1]:sub(1, match.end_col))
    end
  end)
  return found
end

describe('a regular expression', function()
  it('means what it means elsewhere', function()
    for _, case in ipairs({
      { 'a.c', 'abc a\nc axc', { 'abc', 'axc' } },
      { 'fo+', 'f fo foo', { 'fo', 'foo' } },
      { 'fo*?', 'foo', { 'f' } },
      { '"[^"]*"', 'x "a" y "b c"', { '"a"', '"b c"' } },
      { '".*?"', 'x "a" y "b c"', { '"a"', '"b c"' } },
      { 'fo{2}', 'foo fo', { 'foo' } },
      { 'fo{1,}?', 'foo', { 'fo' } },
      { 'a{b}', 'a{b} ab', { 'a{b}' } },
      { '\\bword\\b', 'word words sword word', { 'word', 'word' } },
      { '\\bpost\\b', 'äpost postä post', { 'post' } },
      { '\\Bord', 'word ord', { 'ord' } },
      { '^x|y$', 'x x y y', { 'x', 'y' } },
      { '(?:a|b)c', 'ac bc cc', { 'ac', 'bc' } },
      { '(a)\\1', 'aa ab', { 'aa' } },
      { '(?P<n>a)b', 'ab', { 'ab' } },
      { '[a-c_\\d]+', 'ab_9 z', { 'ab_9' } },
      { '[^\\s]+', 'a b', { 'a', 'b' } },
      { '[]a]+', 'x]a', { ']a' } },
      { '[\\]\\-\\^\\\\]+', 'x]-^\\', { ']-^\\' } },
      { '[[:alpha:]]+', 'ab1', { 'ab' } },
      { '[[]', 'a[b', { '[' } },
      { '\\w+\\(\\)', 'f() g (x)', { 'f()' } },
      { '\\x41\\u0042', 'AB', { 'AB' } },
      { 'a~b<c>&%@=', 'a~b<c>&%@=', { 'a~b<c>&%@=' } },
      { '(?i)ab', 'AB ab', { 'AB', 'ab' } },
      { 'ä+', 'ääb', { 'ää' } },
      { '.', 'ä€𝄞', { 'ä', '€', '𝄞' } },
      { 'a$', 'ba\r\nca\r', { 'a', 'a' } },
      { 'x*', 'ab', {} },
    }) do
      t.eq({ case[1], case[3] }, { case[1], matches(case[1], case[2]) })
    end
  end)

  it('asks none of the options of the person', function()
    vim.o.ignorecase, vim.o.magic = true, false
    vim.bo.iskeyword = '@,48-57,_,-'
    t.eq({ 'ab' }, matches('\\bab\\b', 'AB ab-c'))
    t.eq({ 'AB', 'ab' }, matches('ab', 'AB ab', { ignore_case = true }))
    vim.o.ignorecase, vim.o.magic = false, true
    vim.cmd('setlocal iskeyword&')
  end)

  it('that does not translate is refused with the reason', function()
    for source, why in pairs({
      ['(?=a)'] = 'look%-arounds',
      ['(?<!a)b'] = 'look%-arounds',
      ['(a'] = 'not closed',
      ['a)'] = 'has no %(',
      ['[a'] = 'not closed',
      ['*a'] = 'nothing to repeat',
      ['a++'] = 'possessive',
      ['a\\'] = 'ends with a backslash',
      ['\\2(a)'] = 'no such group',
      ['\\p{L}'] = '\\p is not known',
      ['a\\nb'] = 'one by one',
      ['a{1001}'] = 'counts go to 1000',
      [('a'):rep(1001)] = 'longer than 1000 bytes',
    }) do
      local made, err = matcher.new({ query = source, regex = true })
      t.eq(nil, made)
      t.eq('validation_error', err.code)
      t.matches(why, err.message)
    end
  end)

  it('does not hang on a text', function()
    local begun = vim.uv.hrtime()
    t.eq({}, matches('(a+)+$', ('a'):rep(5000) .. 'b'))
    t.eq({}, matches('(x|xx)*y', ('x'):rep(5000)))
    t.ok(vim.uv.hrtime() - begun < 3e9)
    t.eq({}, matches('a', ('a'):rep(20001)))
    t.eq(20000, #matches('aa*', ('a'):rep(20000))[1])
  end)

  it('that cannot be stopped is tried on short lines alone, and the others are counted', function()
    local line, wide = ('ab '):rep(600), ('a'):rep(19000)
    for source, text in pairs({
      ['.{900}c'] = wide,
      ['(?:(?:a|b)*){40}c'] = wide,
      [('\\b.*'):rep(15) .. 'c'] = line,
      ['(\\b.*){15}c'] = line,
    }) do
      local made = assert(matcher.new({ query = source, regex = true }))
      local begun = vim.uv.hrtime()
      made:each(text, error)
      t.ok(vim.uv.hrtime() - begun < 60e6, source)
      t.eq(1, made.passed)
    end
    for _, source in ipairs({ '((a{100}){100}){100}b', '(a{200}){200}', ('\\b.*'):rep(150) .. 'c' }) do
      local made, err = matcher.new({ query = source, regex = true })
      t.eq(nil, made)
      t.matches('would take too long', err.message)
    end
  end)

  it('that Vim gives up on shows nothing to the person', function()
    local made = assert(matcher.new({ query = '(.*)(.*)\\1\\2c', regex = true }))
    local before = vim.api.nvim_exec2('messages', { output = true }).output
    made:each(('ab '):rep(300) .. '\nc', function() end)
    t.eq(1, made.passed)
    t.eq(before, vim.api.nvim_exec2('messages', { output = true }).output)
  end)

  it('finds edges of words on lines with many of them', function()
    t.eq({ ('ab '):rep(1000) .. 'ac' }, matches('\\bab\\b.*\\bac\\b', ('ab '):rep(1000) .. 'ac'))
  end)

  it('gives its groups to a replacement', function()
    local made = assert(matcher.new({ query = '(\\w+)\\.(\\w*)', regex = true }))
    local line, new, replaced = 'x = a.b + c.', {}, made:replacer('$2-$1 $0 $$1 $9')
    made:each(line, function(match)
      table.insert(new, replaced(line, match, 11))
      table.insert(new, replaced(line, match, #new == 1 and 10 or 8) or 'nothing')
    end)
    t.eq({ 'b-a a.b $1 ', 'nothing', '-c c. $1 ', 'nothing' }, new)
    local plain = assert(matcher.new({ query = 'a' }))
    t.eq('$1', plain:replacer('$1')('a', { row = 0, col = 0, end_row = 0, end_col = 1 }, 2))
  end)
end)

describe('plain text', function()
  local function plain(query, text, opts)
    return matches(query, text, vim.tbl_extend('force', { regex = false }, opts or {}))
  end

  it('is found as it stands, over several lines too', function()
    t.eq({ 'a.b', 'a.b' }, plain('a.b', 'axb a.b\na.b'))
    t.eq({ 'x⏎y', 'x⏎y' }, plain('x\ny', 'x\ny\nax\nyb'))
    t.eq({ 'aa' }, plain('aa', 'aaa'))
    t.eq({}, plain('b\n\nc', 'b\nc'))
  end)

  it('is found in any case, and as a word', function()
    t.eq({ 'Ab', 'aB' }, plain('ab', 'Ab aB', { ignore_case = true }))
    t.eq({ 'Ä', 'ä' }, plain('ä', 'Ä ä', { ignore_case = true }))
    t.eq({ 'post' }, plain('post', 'posts repost post_x äpost post', { word = true }))
    t.eq({ '.post', '.post' }, plain('.post', 'a.post .post', { word = true }))
  end)
end)

describe('globs', function()
  it('are of names, or of paths when they have a slash; ! leaves out', function()
    local function taken(globs)
      local takes = assert(files.matcher(globs))
      return vim.tbl_filter(takes, { 'a.py', 'b.lua', 'src/a.py', 'src/deep/c.py', 'test/a.py' })
    end
    t.eq(5, #taken(nil))
    t.eq({ 'a.py', 'src/a.py', 'src/deep/c.py', 'test/a.py' }, taken({ '*.py' }))
    t.eq({ 'src/a.py' }, taken({ 'src/*.py' }))
    t.eq({ 'src/a.py', 'src/deep/c.py' }, taken({ './src/**' }))
    t.eq({ 'src/a.py', 'src/deep/c.py' }, taken({ 'src/' }))
    t.eq({ 'a.py', 'b.lua', 'test/a.py' }, taken({ '!src/**' }))
    t.eq({ 'b.lua', 'src/deep/c.py' }, taken({ '*.{py,lua}', '!a.py' }))
    local many = {}
    for i = 1, 51 do
      many[i] = 'a'
    end
    t.eq('validation_error', select(2, files.matcher(many)).code)
  end)
end)

describe('an answer', function()
  it('takes the longest way that there is room for', function()
    local function variant(length, without)
      return {
        without = without,
        text = function()
          return ('x'):rep(length)
        end,
      }
    end
    local variants = { variant(100), variant(50, 'context'), variant(20, 'lines'), variant(10, 'all') }
    t.eq(100, #fit.longest(variants, 'narrow', 100))
    t.matches('^x+\n%(too much for context; narrow%)$', fit.longest(variants, 'narrow', 99))
    t.matches('^x+\n%(too much for lines; narrow%)$', fit.longest(variants, 'narrow', 20))
    t.matches('^…\n%(too much for all; narrow%)$', fit.longest(variants, 'narrow', 5))
  end)
end)
