-- slow
-- Regular expressions match the same text with ripgrep and git; plain text, globs and pages of results.

local background = require('mcp-tools.editor.background')
local engines = require('mcp-tools.editor.search.engine')
local files = require('mcp-tools.editor.search.files')
local project = require('editor_project')
local result = require('mcp-tools.editor.result')
local text_search = require('mcp-tools.editor.search')
local search_programs = require('search_programs')
local t = require('helpers')

describe('regular expressions', function()
  --- Runs a function in a coroutine, and returns what it returned.
  local function await(fn)
    local value
    background.run(fn, function(made) value = { made } end)
    return t.wait(function() return value end, 20000)[1]
  end

  local function open(query, opts)
    return await(function(ctx)
      local engine, err = engines.open(ctx, vim.tbl_extend('force', { query = query, regex = true }, opts or {}))
      return engine or err
    end)
  end

  --- Texts that a pattern matches, in order.
  local function matches(query, text, opts)
    local engine, lines = open(query, opts), vim.split(text, '\n', { plain = true })
    t.eq({ query, nil }, { query, engine.message })
    local function text_of(spot) return lines[spot.row + 1]:sub(spot.col + 1, spot.end_col) end
    return await(function(ctx) return vim.tbl_map(text_of, assert(engine:matches(ctx, text .. '\n', math.huge))) end)
  end

  local function search(query, opts)
    return (project.text('file_search', vim.tbl_extend('force', { query = query, regex = true }, opts or {})))
  end

  for _, name in ipairs({ 'rg', 'git' }) do
    describe('a regular expression by ' .. name, function()
      after_each(search_programs.restore)
      project.each({ 'file' }, function()
        project.init()
        search_programs.use(name)
      end)

      it('has the usual meaning', function()
        t.eq(name, open('a').name)
        for _, case in ipairs({
          { 'a.c', 'abc a\nc axc', { 'abc', 'axc' } },
          { 'fo*?', 'foo', { 'f' } },
          { '".*?"', 'x "a" y "b c"', { '"a"', '"b c"' } },
          { 'fo{2}', 'foo fo', { 'foo' } },
          { '\\bpost\\b', 'äpost postä post', { 'post' } },
          { '^x|y$', 'x x y y', { 'x', 'y' } },
          { '(a)\\1', 'aa ab', { 'aa' } },
          { '(?<!s)word(?=s)', 'words swords word', { 'word' } },
          { '(?P<n>a)b', 'ab', { 'ab' } },
          { '[[:alpha:]]+', 'ab1', { 'ab' } },
          { '\\p{Lu}', 'aÄ', { 'Ä' } },
          { '(?i)ab', 'AB ab', { 'AB', 'ab' } },
          { 'ä+', 'ääb', { 'ää' } },
          { '.', 'ä€𝄞', { 'ä', '€', '𝄞' } },
          { 'a$', 'ba\r\nca\r', { 'a', 'a' } },
          { 'po.t', 'a\0b po\0t', { 'po\0t' } },
          { 'a+', '\27[maa\27[31maaa', { 'aa', 'aaa' } },
        }) do
          t.eq({ case[1], case[3] }, { case[1], matches(case[1], case[2]) })
        end
        t.eq({ '\\n' }, matches('\\\\n', 'a\\nb'))
        t.eq({ 'AB', 'ab' }, matches('ab', 'AB ab', { ignore_case = true }))
        t.eq({ 'post' }, matches('po.t', 'posts äpost post', { word = true }))
        t.eq(30000, #matches('aa*', ('a'):rep(30000))[1])
      end)

      it('is matched without a long block of the editor, and up to a number of matches', function()
        local function timed(query, text, max)
          local engine = open(query)
          local check_turns = t.watch_turns()
          local found = await(function(ctx)
            local spots, _, cut = engine:matches(ctx, text, max)
            return { spots = #spots, cut = cut == true }
          end)
          check_turns()
          return found
        end
        t.eq({ spots = 0, cut = true }, timed('^$|zzz', ('\n'):rep(4e6), 100))
        t.eq({ spots = 100, cut = true }, timed('.', (('a'):rep(80) .. '\n'):rep(30000), 100))
        t.eq({ spots = 100, cut = true }, timed('a', ('a'):rep(2e6) .. '\n', 100))
        t.eq({ spots = 2, cut = false }, timed('a', ('\r\n'):rep(1e6) .. 'aa\n', 100))
      end)

      it('that is invalid is refused with the reason', function()
        for source, why in pairs({
          ['(a'] = 'parenthesis',
          ['[a'] = 'terminating ]',
          ['\\'] = 'cannot be used: .',
          [('a'):rep(5000)] = '4096 bytes',
          ['a\nb'] = 'line by line',
          ['\\\\\\n'] = 'line by line',
        }) do
          local err = open(source)
          t.eq({ source, 'validation_error' }, { source, err.code })
          t.matches(why, err.message)
        end
      end)

      it('matches lines of CRLF files, and text in other encodings, as the editor shows them', function()
        project.write('lf.txt', 'one;\ncafé\n')
        project.write('crlf.txt', 'one;\r\ntwo;\r\n')
        project.write('latin.txt', 'caf\233\n')
        project.write('mark.txt', '\239\187\191one;\n')
        t.matches('^4 matches in 3 files\ncrlf.txt:1: .*\nlf.txt:1: .*\nmark.txt:1: ', search(';$'))
        t.matches('^3 matches in 3 files\ncrlf.txt:1: .*\nlf.txt:1: .*\nmark.txt:1: ', search('^one'))
        t.matches('^2 matches in 2 files\nlatin.txt:1: café\nlf.txt:2: café', search('café'))
        t.matches('^2 matches in 2 files\nlatin.txt', search('caf\\W?.$'))
        t.matches('^2 matches in 2 files\nlatin.txt', search('café', { regex = false }))
      end)

      it('matches unsaved text instead of the text on disk', function()
        vim.cmd.edit(project.write('a.txt', 'old\n'))
        vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'x', 'new one' })
        t.eq('1 match in 1 file; unsaved: a.txt\na.txt:2: new one', search('n.w'))
        t.matches('^0 matches', search('^old'))
      end)

      it('searches files that git does not ignore, whatever .ignore contains', function()
        project.write('.ignore', 'a.txt\n')
        project.write('.gitignore', 'b.txt\n')
        project.write('a.txt', 'needle\n')
        project.write('b.txt', 'needle\n')
        t.matches('^1 match in 1 file\na.txt', search('n.edle'))
        vim.system({ 'git', 'add', '-f', 'b.txt' }, { cwd = project.root }):wait()
        t.matches('^2 matches in 2 files\na.txt:1: .*\nb.txt:1: ', search('n.edle'))
        t.matches('^2 matches in 2 files\na.txt:1: .*\nb.txt:1: ', search('needle', { regex = false }))
      end)

      it('works without a repository', function()
        vim.fn.delete(project.root .. '/.git', 'rf')
        project.write('sub/a.txt', 'needle\n')
        t.matches('^1 match in 1 file\nsub/a.txt', search('n.edle'))
      end)

      it('is cancelled with its call at any time, and leaves no file behind', function()
        local function count_files() return #vim.fn.glob(vim.fs.dirname(vim.fn.tempname()) .. '/*/text', true, true) end
        project.write('a.txt', ('x'):rep(200000) .. '\n')
        for _, wait in ipairs({ 0, 5, 20, 100 }) do
          local running = project.start('file_search', { query = '(x+x+)+(?=y)y', regex = true, path = 'a.txt' })
          vim.wait(wait)
          running:cancel('client')
          t.eq(true, running:ended())
        end
        t.wait(function() return count_files() == 0 end)
      end)
    end)
  end

  describe('a replacement by a regular expression', function()
    after_each(search_programs.restore)
    project.each({ 'file' })

    local function replace(replacement)
      local args = { query = '(\\w+)\\.(\\w*)', replacement = replacement, regex = true, expected_count = 3 }
      return project.text('file_replace', args)
    end

    it('uses groups with ripgrep', function()
      search_programs.use('rg')
      project.write('a.txt', 'x = a.b + c.\30\r\n\30é.f\r\n')
      t.ok(replace('$2-$1 $0 $$1 $9'))
      t.eq('x = b-a a.b $1  + -c c. $1 \30\r\n\30f-é é.f $1 \r\n', project.disk('a.txt'))
    end)

    it('refuses groups without ripgrep; the whole match needs none', function()
      search_programs.use('git')
      project.write('a.txt', 'a.b c. é.f\n')
      t.fails('tool_error', 'ripgrep', replace('$1'))
      t.ok(replace('[$0]$$'))
      t.eq('[a.b]$ [c.]$ [é.f]$\n', project.disk('a.txt'))
    end)
  end)

  it('a machine without ripgrep and git refuses regular expressions, and searches plain text', function()
    project.open()
    project.offer({ 'file' })
    project.write('a.txt', 'needle\n')
    search_programs.use('none')
    t.fails('tool_error', 'needs ripgrep', project.text('file_search', { query = 'n.edle', regex = true }))
    t.matches('^1 match', project.text('file_search', { query = 'needle' }))
    search_programs.restore()
    project.close()
  end)
end)

--- Texts that a query matches, in order.
local function plain(query, text, opts)
  local made = text_search.matcher(vim.tbl_extend('force', { query = query }, opts or {}))
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

describe('plain text', function()
  it('is found literally, also over several lines', function()
    t.eq({ 'a.b', 'a.b' }, plain('a.b', 'axb a.b\na.b'))
    t.eq({ { 'x⏎y', 'x⏎y' }, { 'aa' } }, { plain('x\ny', 'x\ny\nax\nyb'), (plain('aa', 'aaa')) })
    t.eq({}, plain('b\n\nc', 'b\nc'))
  end)

  it('takes linear time, however long its lines are', function()
    local matcher, count = text_search.matcher({ query = 'a' }), 0
    t.fast(matcher.each, matcher, ('a'):rep(100000) .. ('b'):rep(3e6), function() count = count + 1 end)
    t.eq(100000, count)
  end)

  it('is found in any case, and as a word', function()
    t.eq({ 'Ab', 'aB' }, plain('ab', 'Ab aB', { ignore_case = true }))
    t.eq({ 'Ä', 'ä' }, plain('ä', 'Ä ä', { ignore_case = true }))
    t.eq({ '^Ä.$\\' }, plain('^ä.$\\', '^Ä.$\\ äx$\\', { ignore_case = true }))
    local text = ('y'):rep(16380) .. 'xÄx' .. ('\0'):rep(40000) .. 'XäX'
    t.eq({ 'xÄx', 'XäX' }, plain('xäx', text, { ignore_case = true }))
    t.eq({ 'post' }, plain('post', 'posts repost post_x äpost post', { word = true }))
    t.eq({ '.post', '.post' }, plain('.post', 'a.post .post', { word = true }))
  end)
end)

it('globs match names, or paths if they have a slash; ! excludes', function()
  local function taken(globs)
    local takes = assert(files.matcher(globs))
    return vim.tbl_filter(takes, { 'a.py', 'b.lua', 'src/a.py', 'src/deep/c.py', 'test/a.py' })
  end
  t.eq({ 5, { 'a.py', 'src/a.py', 'src/deep/c.py', 'test/a.py' } }, { #taken(nil), (taken({ '*.py' })) })
  t.eq({ { 'src/a.py' }, { 'src/a.py', 'src/deep/c.py' } }, { taken({ 'src/*.py' }), (taken({ './src/**' })) })
  t.eq({ 'src/a.py', 'src/deep/c.py' }, taken({ 'src/' }))
  t.eq({ 'a.py', 'b.lua', 'test/a.py' }, taken({ '!src/**' }))
  t.eq({ 'b.lua', 'src/deep/c.py' }, taken({ '*.{py,lua}', '!a.py' }))
  local many = vim.fn['repeat']({ 'a' }, 51)
  t.eq('validation_error', select(2, files.matcher(many)).code)
end)

it('a result uses the longest variant that fits', function()
  local function variant(length, without) return { without = without, text = t.returns(('x'):rep(length)) } end
  local variants = { variant(100), variant(50, 'context'), variant(20, 'lines'), variant(10, 'all') }
  t.eq(100, #result.longest(variants, 'narrow', 100))
  t.matches('^x+\n%(too large to show context; narrow%)$', result.longest(variants, 'narrow', 99))
  t.matches('^x+\n%(too large to show lines; narrow%)$', result.longest(variants, 'narrow', 20))
  t.matches('^…\n%(too large to show all; narrow%)$', result.longest(variants, 'narrow', 5))
end)
