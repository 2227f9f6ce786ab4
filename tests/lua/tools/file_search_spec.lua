-- slow
local project = require('editor_project')
local search_programs = require('search_programs')
local t = require('helpers')

local call, disk = project.text, project.disk

local function search(args) return call('file_search', args) end

local function replace(args) return call('file_replace', args) end

after_each(search_programs.restore)
project.each({ 'file' }, function()
  project.write('a.lua', 'local post = 1\nreturn post -- posts\n')
  project.write('src/b.py', 'def post():\n    return "post äpost"\n')
  project.write('.env', 'post=secret\n')
end)

describe('file_search', function()
  it('limits the total length of globs', function()
    local globs = vim.fn['repeat']({ ('{a,b}'):rep(20) }, 50)
    local _, err = search({ query = 'post', globs = globs })
    t.eq({ 'validation_error', 'globs: the maximum is 2000 bytes in total' }, { err.code, err.message })
  end)

  it('goes through the open buffers once for many files', function()
    for i = 1, 200 do
      project.write(('many/%d.lua'):format(i), 'needle')
    end
    local text
    local count = t.calls(vim.api, 'nvim_list_bufs', function() text = search({ query = 'needle' }) end)
    t.matches('^200 matches in 200 files', text)
    t.ok(count < 100, ('%d count'):format(count))
  end)

  it('returns the total, and a row for each match', function()
    local rows = {
      '6 matches in 2 files',
      'a.lua:1: local post = 1',
      'a.lua:2: return post -- posts',
      'src/b.py:1: def post():',
      'src/b.py:2:     return "post äpost"',
    }
    t.eq(table.concat(rows, '\n'), (search({ query = 'post' })))
    t.matches('^4 matches in 2 files\n', (search({ query = 'post', word = true })))
    local python = search({ query = 'p[aeiou]st\\b', regex = true, globs = { 'src/**' }, word = true })
    t.matches('^2 matches in 1 file\nsrc/b.py:1: ', python)
    t.matches('^3 matches in 1 file\n', (search({ query = 'POST', ignore_case = true, path = 'src' })))
    t.matches('^0 matches in 0 files; sensitive files', (search({ query = 'none' })))
    t.matches('regex=true', (search({ query = 'po.+t' })))
  end)

  it('searches unsaved text instead of the text on disk', function()
    vim.cmd.edit('a.lua')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'unsaved' })
    t.eq('1 match in 1 file; unsaved: a.lua\na.lua:1: unsaved', (search({ query = 'unsaved' })))
    t.ok(not search({ query = 'post' }):find('a.lua', 1, true))
    vim.cmd.edit('new/file.lua')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'unsaved too' })
    t.matches('new/file.lua', (search({ query = 'unsaved' })))
  end)

  it('treats NUL as an ordinary character', function()
    vim.cmd.edit(project.write('nul.txt', 'post\0post\n'))
    t.matches('^2 matches in 1 file\nnul.txt:1: ', (search({ query = 'po.t', regex = true, globs = { 'nul.txt' } })))
    search_programs.use('rg')
    replace({ query = 'p(o.*s)t', replacement = '$1', regex = true, path = 'nul.txt', expected_count = 1 })
    t.eq({ 'ost\0pos' }, vim.api.nvim_buf_get_lines(0, 0, -1, false))
  end)

  it('never reveals the text of a sensitive file', function()
    local none = search({ query = 'none' })
    for _, query in ipairs({ 'secret', 'post=' }) do
      t.eq(none, (search({ query = query })))
    end
    t.eq(none, (search({ query = 'post=', globs = { '.env' } })))
    vim.cmd.edit('.env')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'fresh' })
    t.eq(none, (search({ query = 'fresh' })))
  end)

  it('returns lines around a match, once', function()
    project.write('c.txt', 'one\ntwo\nthree\nfour\nfive\nsix\nseven\n')
    local rows = 'c.txt-1- one\nc.txt:2: two\nc.txt-3- three\nc.txt-4- four\nc.txt:5: five\nc.txt-6- six'
    t.eq('2 matches in 1 file\n' .. rows, (search({ query = 't[w]o|ive', regex = true, context = 1 })))
  end)

  it('is paged, and returns counts when it is too long', function()
    project.write('many.txt', table.concat(t.lines(3000, 'needle %d ' .. ('x'):rep(40)), '\n'))
    local text = search({ query = 'needle', limit = 2, offset = 1 })
    t.matches('^3000 matches in 1 file; 2%-3 shown, offset=3 continues\nmany.txt:2: needle 2 x+\nmany.txt:3: ', text)
    text = search({ query = 'needle', limit = 2, context = 20 })
    t.matches('many.txt%-22%- needle 22', text)
    text = search({ query = 'needle', limit = 5000, context = 1 })
    local hint = '(too large to show lines, only counts per file; narrow it with path, globs or limit)'
    t.eq('3000 matches in 1 file\nmany.txt: 3000\n' .. hint, text)
    t.ok(#search({ query = 'needle', limit = 300 }) <= 24000 + 200)
  end)

  it('refuses invalid arguments', function()
    t.eq('validation_error', select(2, search({ query = '' })).code)
    t.eq('validation_error', select(2, search({ query = '(', regex = true })).code)
    t.eq('not_found', select(2, search({ query = 'a', path = 'none' })).code)
    t.eq('access_denied', select(2, search({ query = 'a', path = '.env' })).code)
  end)
end)

describe('file_replace', function()
  it('lists matches first, and then replaces exactly those', function()
    vim.cmd.edit('a.lua')
    local text = replace({ query = 'post', replacement = 'send', word = true })
    t.matches('^4 matches in 2 files, nothing replaced; expected_count=4 replaces all', text)
    t.matches('\na.lua:1: local post = 1\n', text)
    t.matches('local post', disk('a.lua'))
    text = replace({ query = 'post', replacement = 'send', word = true, expected_count = 4 })
    t.eq('4 matches replaced in 2 files\na.lua: 2, unsaved (open in the editor)\nsrc/b.py: 2', text)
    t.eq({ 'local send = 1', 'return send -- posts' }, vim.api.nvim_buf_get_lines(0, 0, -1, false))
    t.matches('local post', disk('a.lua'))
    t.eq('def send():\n    return "send äpost"\n', disk('src/b.py'))
    vim.cmd('silent undo')
    t.eq({ 'local post = 1', 0 }, { vim.api.nvim_buf_get_lines(0, 0, 1, false)[1], vim.fn.undotree().seq_cur })
  end)

  it('limits the size of the new text', function()
    search_programs.use('rg')
    project.write('many.txt', ('x\n'):rep(9000))
    local args = { query = 'x', replacement = ('y'):rep(1000), path = 'many.txt' }
    t.matches('would be more than 4 MiB', select(2, replace(args)).message)
    project.write('many.txt', ('x'):rep(9000) .. '\n')
    args = { query = '(x+)', replacement = ('$1'):rep(1000), path = 'many.txt', regex = true }
    t.matches('would be more than 4 MiB', select(2, replace(args)).message)
    args.replacement = '$0$$$2a'
    t.matches('^1 match in 1 file, nothing replaced', (replace(args)))
    args.expected_count = 1
    t.matches('^1 match replaced', (replace(args)))
    t.eq(('x'):rep(9000) .. '$a\n', disk('many.txt'))
  end)

  it('replaces nothing when the count differs', function()
    local before = disk('a.lua') .. disk('src/b.py')
    local args = { query = 'post', replacement = 'send', expected_count = 5 }
    local _, err = replace(args)
    t.eq({ 'stale', 'expected_count is 5, but there are 6 matches; nothing was replaced' }, { err.code, err.message })
    t.eq(before, disk('a.lua') .. disk('src/b.py'))
  end)

  it('supports groups, and text of several lines', function()
    search_programs.use('rg')
    local listed = replace({ query = '"(.*)"', replacement = '[$1]', regex = true })
    t.matches('"post äpost" → %[post äpost%]', (listed:gsub('    return ', '')))
    replace({ query = '"(.*)"', replacement = '[$1]', regex = true, expected_count = 1 })
    t.eq('def post():\n    return [post äpost]\n', disk('src/b.py'))
    project.write('dos.txt', 'one\r\ntwo\r\nthree\r\n')
    replace({ query = 'one\ntwo', replacement = '1\n2', expected_count = 1 })
    t.eq('1\r\n2\r\nthree\r\n', disk('dos.txt'))
  end)

  it('leaves nothing loaded when it fails', function()
    local before = #vim.api.nvim_list_bufs()
    local args = { query = 'post', replacement = 'send', expected_count = 6 }
    project.once('BufReadPost', '*.py', 'call setline(1, "something else")')
    t.eq('stale', select(2, replace(args)).code)
    vim.cmd('silent! bwipeout! ' .. project.root .. '/src/b.py') -- it was changed, so it stays
    t.eq(before, #vim.api.nvim_list_bufs())
  end)

  it('keeps encoding, line breaks, byte order marks and the end of every file', function()
    local texts = {
      ['latin.txt'] = 'caf\233 uno\nb\n',
      ['latin_end.txt'] = 'caf\233 uno',
      ['end.txt'] = 'a\nuno',
      ['dos.txt'] = 'uno\r\nb\r\n',
      ['dos_end.txt'] = 'b\r\nuno',
      ['mark.txt'] = '\239\187\191uno\n',
      ['mark_end.txt'] = '\239\187\191uno',
      ['mixed.txt'] = 'one\r\nuno\nthree\r\n',
      ['old.txt'] = 'uno\rtwo\r',
    }
    for name, text in pairs(texts) do
      project.write(name, text)
    end
    t.matches('café uno.*\nmark.txt:1: uno\n.*\nmixed.txt:2: uno', (replace({ query = 'uno', replacement = 'two' })))
    t.ok(replace({ query = 'uno', replacement = 'dos', expected_count = 9 }))
    for name, text in pairs(texts) do
      t.eq({ name, (text:gsub('uno', 'dos')) }, { name, disk(name) })
    end
    -- Text that the encoding of one file lacks is written to no file.
    local value, err = replace({ query = 'dos', replacement = '日', expected_count = 9 })
    t.fails('tool_error', 'latin.* is not written: its encoding %(latin1%)', value, err)
    t.eq({ 'caf\233 dos\nb\n', 'a\ndos' }, { disk('latin.txt'), disk('end.txt') })
  end)

  it('needs approval only when it replaces', function()
    t.matches('^0 matches in 0 files, nothing replaced$', (replace({ query = 'gone', replacement = '' })))
    local definition = require('mcp-tools.tools.file.replace')
    t.eq('it changes files', definition.needs_approval({ expected_count = 1 }))
    t.eq(false, definition.needs_approval({}))
  end)

  it('returns few lines for many files, and names those that are unsaved', function()
    for i = 1, 100 do
      project.write(('many/%d.lua'):format(i), 'needle\n')
    end
    vim.cmd.edit('many/7.lua')
    local text = replace({ query = 'needle', replacement = 'pin', expected_count = 100 })
    t.eq('100 matches replaced in 100 files\nmany/7.lua: 1, unsaved (open in the editor)', text)
  end)

  it('shows the diff to the user once the files were searched, without an earlier dry run', function()
    local definition = require('mcp-tools.tools.file.replace')
    local args = { query = 'local post', replacement = 'local send', regex = false, ignore_case = false, word = false }
    args.expected_count = 1
    local shown, err
    local function ask()
      definition.preview(args, function(failed)
        err = failed
        shown = definition.preview(args) or ''
      end)
      t.wait(function() return shown end, 8000)
      return shown
    end
    t.matches('^%-%-%- a/a.lua\n%+%+%+ b/a.lua\n@@ .-\n%-local post = 1\n%+local send = 1\n', ask())
    -- Another question is about the current text.
    args.expected_count, shown = 2, nil
    t.matches('^replaces 2 matches', ask())
    t.eq('stale', err.code)
  end)

  it('keeps that diff while the texts are unchanged, however long the user reads it', function()
    local definition = require('mcp-tools.tools.file.replace')
    local args = { query = 'local post', replacement = 'local get', regex = false, expected_count = 1 }
    local is_known = false
    definition.preview(args, function() is_known = true end)
    t.wait(function() return is_known end, 8000)
    local shown = definition.preview(args)
    t.matches('^%-%-%- a/a.lua\n', shown)
    local hrtime = vim.uv.hrtime
    vim.uv.hrtime = function() return hrtime() + 600e9 end
    local later = definition.preview(args)
    vim.uv.hrtime = hrtime
    t.eq(shown, later)
    vim.cmd.edit('a.lua')
    vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'typed' })
    t.matches('^replaces 1 match', definition.preview(args))
  end)

  it('and a search do not block the editor on lines of megabytes', function()
    project.write('min.js', table.concat(t.lines(100, ('x'):rep(30000) .. 'needle%d')) .. '\n')
    local began = vim.uv.hrtime()
    local text = replace({ query = 'needle', replacement = 'pin' })
    t.matches('^100 matches in 1 file.*\nmin.js:1: …x+needle1x+…\nmin.js:1: …x+needle2x+', text)
    t.matches('^100 matches in 1 file', (search({ query = 'needle' })))
    t.ok((vim.uv.hrtime() - began) / 1e9 < 10)
    local many = (('x'):rep(600) .. 'needle'):rep(5000)
    project.write('many.js', many .. '\nneedle\n')
    began = vim.uv.hrtime()
    text = replace({ query = 'xneedle', replacement = 'pin', path = 'many.js', expected_count = 5000 })
    t.eq('5000 matches replaced in 1 file\nmany.js: 5000', text)
    t.ok((vim.uv.hrtime() - began) / 1e9 < 10)
    t.ok(disk('many.js') == many:gsub('xneedle', 'pin') .. '\nneedle\n')
  end)
end)

it('an editor that was started in the home directory has no project to list or search', function()
  project.offer({ 'file' })
  local home = vim.env.HOME
  vim.env.HOME = project.root
  for tool, args in pairs({ file_list = {}, file_search = { query = 'post' } }) do
    local _, err = call(tool, args)
    t.eq({ tool, 'access_denied' }, { tool, (err or {}).code })
    t.matches('is not a project', err.message)
  end
  vim.env.HOME = home
end)
