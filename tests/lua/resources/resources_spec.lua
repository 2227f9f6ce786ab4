-- slow
local core = require('mcp-tools.core')
local project = require('editor_project')
local t = require('helpers')

local namespace = vim.api.nvim_create_namespace('resources-spec')

local function refused(uri)
  t.eq({ code = 'not_found', message = 'Resource not found' }, project.run('resource', uri).error)
end

--- Subscribes to a resource; `count` is the number of its notifications.
local function watched(uri)
  require('mcp-tools.instances.project').fix(project.root)
  local located = assert(require('mcp-tools.calls.kinds.resource').find(core.get().registry, uri))
  local heard = { count = 0 }
  heard.stop = located.resource.watch(function() heard.count = heard.count + 1 end, located.params)
  --- Waits for a notification that `fn`, a function or a command, causes.
  function heard.after(fn)
    local before = heard.count
    local run = type(fn) == 'string' and function() vim.cmd(fn) end or fn
    run()
    t.wait(function() return heard.count > before end, 3000, 'a change of ' .. uri)
  end
  return heard
end

project.each()

describe('nvim://buffers', function()
  it('lists open buffers, with the URI of each that may be read', function()
    vim.cmd.edit(project.write('sub/a b.lua', 'one\ntwo\n'))
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'ONE' })
    vim.bo.filetype = 'lua'
    vim.cmd('split ' .. project.write('.env', 'KEY=hidden'))
    vim.cmd('split ' .. project.write(project.base .. '/outside.txt', 'x'))
    vim.cmd.wincmd('p')
    local by_path = {}
    for _, buffer in ipairs(project.data('nvim://buffers').buffers) do
      by_path[buffer.path or ''] = buffer
    end
    local a = by_path[project.root .. '/sub/a b.lua']
    t.eq({ 'nvim://buffer/sub/a%20b.lua', true, true, 2, 'lua' }, { a.uri, a.modified, a.visible, a.lines, a.filetype })
    t.eq({ 'ONE\ntwo\n', nil }, { project.contents(a.uri).text, by_path[project.root .. '/.env'].uri })
    t.eq(nil, by_path[project.base .. '/outside.txt'].uri)
    t.eq(true, by_path[project.root .. '/.env'].current)
  end)

  it('notifies when buffers open, close and change', function()
    local heard = watched('nvim://buffers')
    heard.after(function() vim.cmd.edit(project.write('a.txt', 'x')) end)
    heard.after('silent! bwipeout!')
    heard.stop()
    local before = heard.count
    vim.cmd.edit(project.write('b.txt', 'x'))
    t.eq(before, heard.count)
  end)
end)

describe('nvim://buffer/{+path}', function()
  it('is the text in the buffer, with its last line ending', function()
    local path = project.edit('a.lua', 'one\ntwo\n')
    vim.api.nvim_buf_set_lines(0, 1, 2, false, { 'unsaved é' })
    local contents = project.contents('nvim://buffer/a.lua')
    t.eq({ 'one\nunsaved é\n', 'text/plain' }, { contents.text, contents.mimeType })
    t.eq('nvim://buffer/a.lua', contents.uri)
    t.eq(contents.text, project.contents('nvim://buffer/' .. path).text)
    vim.cmd.edit(project.write('no-end.txt', 'last'))
    t.eq('last', project.contents('nvim://buffer/no-end.txt').text)
  end)

  it('repairs bytes that are not UTF-8 and reports that', function()
    vim.cmd('edit ++enc=latin1 ++bad=keep ' .. project.write('x.txt', 'x'))
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'a\255b' })
    local contents = project.contents('nvim://buffer/x.txt')
    t.eq({ 'a\239\191\189b', { lossy = true } }, { vim.trim(contents.text), contents._meta })
  end)

  it('is not found for a file that is not open, is sensitive, or is outside the project', function()
    project.write('a.lua', 'x')
    refused('nvim://buffer/a.lua')
    refused('nvim://buffer/none.lua')
    vim.cmd.edit(project.write('.env', 'KEY=hidden'))
    refused('nvim://buffer/.env')
    vim.cmd.edit(project.write(project.base .. '/outside.txt', 'x'))
    refused('nvim://buffer/' .. project.base .. '/outside.txt')
    vim.cmd.edit(project.root .. '/a.lua')
    t.ok(project.contents('nvim://buffer/a.lua'))
    vim.b.sensitive = true
    refused('nvim://buffer/a.lua')
  end)

  it('notifies of every edit, also after reload, close and reopening', function()
    local path = project.write('a.lua', 'one\n')
    local heard = watched('nvim://buffer/a.lua')
    heard.after('edit ' .. path)
    heard.after(function() vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'two' }) end)
    heard.after('edit!')
    heard.after(function() vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'three' }) end)
    heard.after('bwipeout!')
    heard.after('edit ' .. path)
    heard.after(function() vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'four' }) end)
    heard.stop()
    local before = heard.count
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'five' })
    vim.cmd('edit!')
    t.eq(before, heard.count)
  end)

  it('notifies when a buffer is renamed to or from the path, also through a link', function()
    local path = project.write('a.lua', 'one\n')
    vim.uv.fs_symlink(path, project.root .. '/link.lua')
    local heard = watched('nvim://buffer/a.lua')
    vim.cmd.edit(project.write('b.lua', 'x'))
    vim.cmd('silent write')
    t.eq(0, heard.count)
    heard.after(function() vim.cmd('silent file ' .. project.root .. '/link.lua') end)
    heard.after(function() vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'two' }) end)
    heard.after(function() vim.cmd('silent file ' .. project.root .. '/c.lua') end)
    local before = heard.count
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'three' })
    t.eq(before, heard.count)
    heard.stop()
  end)

  it('completes open files that may be read', function()
    for _, name in ipairs({ 'lua/b.lua', 'lua/a.lua', 'other.txt', '.env' }) do
      vim.cmd.edit(project.write(name, 'x'))
    end
    project.write('lua/closed.lua', 'x')
    local ref = { type = 'resource', uri = 'nvim://buffer/{+path}' }
    t.eq({ 'lua/a.lua', 'lua/b.lua' }, project.complete(ref, 'path', 'lua/'))
    t.eq({ 'lua/a.lua', 'lua/b.lua', 'other.txt' }, project.complete(ref, 'path', ''))
    t.eq({ 'lua/b.lua' }, project.complete(ref, 'path', 'B.L'))
  end)
end)

describe('nvim://diagnostics', function()
  local function set(name, text, list)
    vim.cmd.edit(project.write(name, text))
    vim.diagnostic.set(namespace, 0, list)
    return vim.api.nvim_get_current_buf()
  end

  it('lists all diagnostics, the most severe of each file first, with 1-based columns', function()
    set('a.lua', 'é = x\nok\n', {
      { lnum = 1, col = 0, severity = vim.diagnostic.severity.HINT, message = 'mild' },
      {
        lnum = 0,
        col = 3,
        end_col = 4,
        severity = vim.diagnostic.severity.ERROR,
        message = 'bad',
        source = 's',
        code = 'E1',
      },
    })
    set('b.lua', 'x', { { lnum = 0, col = 0, severity = vim.diagnostic.severity.WARN, message = 'hm' } })
    local view = project.data('nvim://diagnostics')
    t.eq({ error = 1, warning = 1, hint = 1 }, view.counts)
    t.has({ path = 'a.lua', line = 1, column = 3, end_line = 1, end_column = 4 }, view.diagnostics[1])
    t.has({ severity = 'error', message = 'bad', source = 's', code = 'E1' }, view.diagnostics[1])
    t.eq({ 3, 'mild', 'b.lua' }, { view.total, view.diagnostics[2].message, view.diagnostics[3].path })
    local one = project.data('nvim://diagnostics/b.lua')
    t.eq({ 'b.lua', 1, 'hm' }, { one.path, one.total, one.diagnostics[1].message })
    local none = project.data('nvim://diagnostics/none.lua')
    t.eq({ 0, false }, { none.total, none.open })
  end)

  it('returns only the count for sensitive files and files outside the project', function()
    set('.env', 'KEY=hidden', { { lnum = 0, col = 0, message = 'unused value hidden' } })
    set(project.base .. '/outside.txt', 'x', { { lnum = 0, col = 0, message = 'elsewhere' } })
    local contents = project.contents('nvim://diagnostics')
    t.ok(not contents.text:find('hidden') and not contents.text:find('elsewhere'))
    local view = vim.json.decode(contents.text)
    t.eq({ 0, 2 }, { view.total, #view.withheld })
    t.eq({ '.env', 1, 'sensitive' }, { view.withheld[1].path, view.withheld[1].count, view.withheld[1].why })
    refused('nvim://diagnostics/.env')
    refused('nvim://diagnostics/' .. project.base .. '/outside.txt')
  end)

  it('notifies of changes; a subscription to one file gets only changes of that file', function()
    local a, b = set('a.lua', 'x', {}), set('b.lua', 'x', {})
    local all, one = watched('nvim://diagnostics'), watched('nvim://diagnostics/a.lua')
    all.after(function() vim.diagnostic.set(namespace, b, { { lnum = 0, col = 0, message = 'x' } }) end)
    t.eq(0, one.count)
    one.after(function() vim.diagnostic.set(namespace, a, { { lnum = 0, col = 0, message = 'x' } }) end)
    all.stop()
    one.stop()
  end)
end)

describe('nvim://selection', function()
  local function selection() return project.data('nvim://selection').selection end

  it('is the last selection, by characters, lines or block', function()
    vim.cmd.edit(project.write('a.txt', 'aé bc\ndef\nghi\n'))
    t.eq(vim.NIL, selection())
    vim.cmd('normal! 1G0lvlj\27')
    local got = selection()
    t.eq({ 'é bc\ndef', 'characters', 'a.txt', false }, { got.text, got.mode, got.path, got.active })
    t.eq({ 1, 2, 2, 3 }, { got.start_line, got.start_column, got.end_line, got.end_column })
    vim.cmd('normal! 2GVj\27')
    got = selection()
    t.eq({ 'def\nghi', 'lines', 1, 3 }, { got.text, got.mode, got.start_column, got.end_column })
    vim.cmd('normal! 2G0l\22jl\27')
    got = selection()
    t.eq({ 'ef\nhi', 'block' }, { got.text, got.mode })
  end)

  it('is the active selection in visual mode', function()
    vim.cmd.edit(project.write('a.txt', 'abc\ndef\n'))
    vim.cmd('normal! 2G$vh')
    local got = selection()
    t.eq({ 'ef', true, 2, 3 }, { got.text, got.active, got.start_column, got.end_column })
    vim.cmd('normal! \27')
  end)

  it('omits its text when the file may not be read', function()
    vim.cmd.edit(project.write('.env', 'KEY=hidden'))
    vim.cmd('normal! V\27')
    local got = selection()
    t.eq({ '.env', nil, 'sensitive' }, { got.path, got.text, got.withheld })
    vim.cmd.edit(project.write(project.base .. '/outside.txt', 'x'))
    vim.cmd('normal! V\27')
    t.eq({ nil, 'outside the project' }, { selection().text, selection().withheld })
  end)
end)

describe('nvim://cursor', function()
  it('is the position in the last normal window, also from a terminal', function()
    vim.cmd.edit(project.write('a.txt', 'one\naé b\n'))
    vim.api.nvim_win_set_cursor(0, { 2, 3 })
    local function place()
      local cursor = project.data('nvim://cursor').cursor
      return { cursor.path, cursor.line, cursor.column, cursor.text }
    end
    t.eq({ 'a.txt', 2, 3, 'aé b' }, place())
    t.terminal()
    t.eq({ 'a.txt', 2, 3, 'aé b' }, place())
  end)

  it('is correct in a line with a NUL byte', function()
    vim.cmd.edit(project.write('a.log', 'one\0zwölf drei\n'))
    vim.api.nvim_win_set_cursor(0, { 1, 10 })
    local cursor = project.data('nvim://cursor').cursor
    t.eq({ 'one\0zwölf drei', 10 }, { cursor.text, cursor.column })
    local at = { lnum = 0, col = 4, end_lnum = 0, end_col = 10, message = 'a number' }
    vim.diagnostic.set(namespace, 0, { at })
    local found = project.data('nvim://diagnostics').diagnostics[1]
    t.eq({ 5, 10 }, { found.column, found.end_column })
  end)

  it('omits the text of a sensitive line', function()
    vim.cmd.edit(project.write('.env', 'KEY=hidden'))
    local cursor = project.data('nvim://cursor').cursor
    t.eq({ '.env', nil, 'sensitive' }, { cursor.path, cursor.text, cursor.withheld })
  end)
end)

describe('nvim://quickfix', function()
  it('lists entries, without the text of files that may not be read', function()
    vim.fn.setqflist({}, ' ', {
      title = 'search',
      items = {
        { filename = project.write('a.lua', 'x'), lnum = 3, col = 2, text = 'here', type = 'E' },
        { filename = project.write('.env', 'KEY=hidden'), lnum = 1, text = 'KEY=hidden' },
        { text = 'just a note' },
      },
    })
    local list = project.data('nvim://quickfix')
    t.eq({ 'search', 3, 1 }, { list.title, list.total, list.current })
    t.eq({ path = 'a.lua', line = 3, column = 2, kind = 'error', text = 'here' }, list.entries[1])
    t.eq({ path = '.env', line = 1, withheld = 'sensitive' }, list.entries[2])
    t.eq({ text = 'just a note' }, list.entries[3])
  end)

  it('redacts lines of a sensitive file whose buffer is gone, and known secrets', function()
    vim.cmd.edit(project.write('.env', 'KEY=hidden-value\nOTHER=hidden-too'))
    local bufnr = vim.api.nvim_get_current_buf()
    vim.fn.setqflist({}, ' ', {
      title = ':grep hidden-value',
      items = {
        { bufnr = bufnr, lnum = 1, text = 'KEY=hidden-value' },
        { bufnr = bufnr, text = 'KEY=hidden-value' },
        { text = 'it says OTHER=hidden-too' },
        { text = 'with ghp_abcdefghijklmnopqrstuvwxyz0123456789' },
      },
    })
    vim.cmd('bwipeout!')
    local text = project.contents('nvim://quickfix').text
    t.ok(not text:find('hidden', 1, true) and not text:find('ghp_', 1, true), text)
    local list = vim.json.decode(text)
    t.eq({ line = 1, withheld = 'not a plain file' }, list.entries[1])
    t.eq({ 4, 'it says [secret]', 'with [secret]' }, { list.total, list.entries[3].text, list.entries[4].text })
  end)

  it('redacts quotes of a sensitive file in entries of other files', function()
    vim.cmd.edit(project.write('.env', 'KEY=hidden-value'))
    vim.cmd.edit(project.write('a.lua', 'local token = 1'))
    vim.fn.setqflist({
      { filename = project.root .. '/a.lua', lnum = 1, text = 'it reads KEY=hidden-value from .env' },
      { filename = project.root .. '/a.lua', lnum = 1, text = 'local token = 1' },
    })
    local list = project.data('nvim://quickfix')
    t.eq({ 'it reads [secret] from .env', 'local token = 1' }, { list.entries[1].text, list.entries[2].text })
    vim.diagnostic.set(vim.api.nvim_create_namespace('quotes'), 0, {
      { lnum = 0, col = 0, message = 'not KEY=hidden-value\nas in .env' },
      { lnum = 0, col = 1, message = 'unused: token = 1' },
    })
    local found = project.data('nvim://diagnostics').diagnostics
    t.eq('not [secret]\nas in .env', found[1].message)
    t.eq('unused: token = [secret]', found[2].message) -- no line of the file
    t.ok(not project.prompt('fix_diagnostics'):find('hidden-value', 1, true))
  end)

  it('can be read while buffers are closed', function()
    local items = {}
    for i = 1, 900 do
      local name = project.root .. '/' .. i .. '.txt'
      items[i] = { filename = name, lnum = i % 2, text = ('some words '):rep(80) .. i }
    end
    vim.fn.setqflist(items)
    local call = core.get().executor:execute('nvim://quickfix', {}, { kind = 'resource', host = 'test' })
    t.eq(false, call:ended())
    vim.cmd('silent! %bwipeout!')
    t.ended(call)
    t.eq(nil, call.outcome.error)
    local list = vim.json.decode(vim.json.decode(call.outcome.payload.text).contents[1].text)
    t.eq({ 900, { withheld = 'not a plain file' } }, { #list.entries, list.entries[900] })
  end)

  it('is truncated when it is long', function()
    local items = t.list(200000, function(i) return { text = 'note ' .. i } end)
    vim.fn.setqflist(items)
    local list = project.data('nvim://quickfix')
    t.eq({ 200000, 1000, 'note 1000' }, { list.total, #list.entries, list.entries[1000].text })
  end)

  it('notifies of setqflist, which triggers no event', function()
    local heard = watched('nvim://quickfix')
    heard.after(function() vim.fn.setqflist({ { text = 'new' } }) end)
    heard.stop()
  end)
end)

describe('nvim://messages', function()
  it('is the message history without secrets, and reading it shows nothing', function()
    vim.cmd.edit(project.write('.env', 'PIN_CODE=778899\n'))
    vim.cmd('messages clear')
    vim.cmd('echomsg "hello there"')
    vim.cmd('echomsg "my token=abcdef123 and ghp_abcdefghijklmnopqrstuvwxyz0123456789"')
    vim.cmd('echomsg "line was PIN_CODE=778899"')
    local text = project.contents('nvim://messages').text
    t.matches({ 'hello there', 'my token=%[secret%] and %[secret%]' }, text)
    t.ok(not text:find('778899'))
    t.eq('n', vim.api.nvim_get_mode().mode)
  end)

  it('redacts lines of a sensitive buffer that is gone', function()
    vim.cmd.edit(project.write('.env', 'PIN_CODE=778899\n'))
    vim.cmd('messages clear')
    vim.cmd('echomsg "line was PIN_CODE=778899, the code 778899"')
    vim.cmd('bwipeout!')
    t.eq('line was [secret], the code [secret]', project.contents('nvim://messages').text)
  end)

  it('does not block the main thread, even with many sensitive buffers', function()
    for i = 1, 30 do
      local lines = t.list(500, function(n) return ('export NAME_%d_%d=value-%d-%d'):format(i, n, i, n) end)
      vim.cmd.edit(project.write(i .. '.env', table.concat(lines, '\n')))
    end
    vim.cmd('messages clear')
    for i = 1, 100 do
      vim.cmd(("echomsg 'export NAME_3_%d=value-3-%d %s'"):format(i, i, ('x'):rep(600)))
    end
    local check_turns = t.watch_turns()
    for _ = 1, 20 do
      t.ok(not project.contents('nvim://messages').text:find('value', 1, true))
    end
    check_turns()
  end)

  it('is truncated to its end when it is long', function()
    vim.cmd('messages clear')
    for i = 1, 100 do
      vim.cmd(("echomsg '%d %s'"):format(i, ('x'):rep(700)))
    end
    local text = project.contents('nvim://messages').text
    t.ok(#text <= 64 * 1024 + 10)
    t.matches({ '^…\n', '100 x+$' }, text)
  end)
end)

describe('nvim://status, modules, discovery', function()
  it("show the editor's state", function()
    vim.cmd.edit(project.write('a.txt', 'x'))
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'y' })
    local status = project.data('nvim://status')
    t.eq({ project.root, 'a.txt', { 'a.txt' } }, { status.root, status.current, status.modified })
    t.eq({ #core.get().registry:list('prompts'), 'stopped' }, { status.offered.prompts, status.bridge.state })
  end)

  it('count the buffers of a language server', function()
    vim.cmd.edit(project.write('a.txt', 'x'))
    local server = require('lsp_double').start(vim.api.nvim_get_current_buf(), project.root, {}, {})
    t.has({ name = 'double', buffers = 1 }, project.data('nvim://status').language_servers[1])
    t.ok(not vim.fn.execute('messages'):find('deprecated', 1, true))
    vim.lsp.stop_client(server.client.id, true)
  end)

  it('name plugins and modules', function()
    vim.fn.mkdir(project.base .. '/pack/some-plugin.nvim', 'p')
    vim.opt.runtimepath:append(project.base .. '/pack/some-plugin.nvim')
    local modules = project.data('nvim://modules')
    vim.opt.runtimepath:remove(project.base .. '/pack/some-plugin.nvim')
    t.ok(vim.list_contains(modules.modules, 'mcp-tools.registry.store'))
    local names = t.field('name', modules.plugins)
    t.ok(vim.list_contains(names, 'some-plugin.nvim') and not vim.list_contains(names, 'runtime'))
  end)

  it('list what was found, and definitions that were refused', function()
    core.get().registry:add('prompts', { name = 'broken' })
    local found = project.data('nvim://discovery')
    core.get().registry.refused["prompt 'broken'"] = nil
    t.eq('bundled', found.resources[1].origin)
    t.matches('resources/', found.resources[1].file)
    local failure = found.failures[#found.failures]
    t.eq("prompt 'broken'", failure.source)
    t.ok(not failure.error:find('\n'))
  end)

  it('notify of new definitions', function()
    local heard = watched('nvim://discovery')
    local registry = core.get().registry
    heard.after(function() registry:add('prompts', { name = 'spec', description = 'x', get = print }) end)
    heard.stop()
    local before = heard.count
    registry:remove('prompts', 'spec')
    t.eq(before, heard.count)
  end)
end)

describe('file:///{+path}', function()
  local function uri(name) return 'file://' .. project.root .. '/' .. name end

  it('is the file on disk, as text or base64', function()
    project.edit('a.json', '{"é":1}')
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'unsaved' })
    local contents = project.contents(uri('a.json'))
    t.eq({ '{"é":1}', 'text/plain', uri('a.json') }, { contents.text, contents.mimeType, contents.uri })
    project.write('a.bin', '\0\1\2')
    contents = project.contents(uri('a.bin'))
    t.eq({ 'AAEC', 'application/octet-stream' }, { contents.blob, contents.mimeType })
    project.write('bad.txt', 'a\255')
    local actual = { project.contents(uri('bad.txt')).text, project.contents(uri('bad.txt'))._meta }
    t.eq({ 'a\239\191\189', { lossy = true } }, actual)
    project.write('empty', '')
    t.eq('', project.contents(uri('empty')).text)
  end)

  it('is not found, in the same words, for every file that may not be read', function()
    project.write('.env', 'KEY=hidden')
    project.write('directory/x', 'x')
    vim.uv.fs_symlink('/etc/passwd', project.root .. '/link')
    vim.system({ 'mkfifo', project.root .. '/pipe' }):wait()
    project.write('locked', 'x')
    vim.uv.fs_chmod(project.root .. '/locked', 0)
    local names = { '.env', 'directory', 'link', 'none', 'pipe', '../outside.txt' }
    if vim.uv.getuid() ~= 0 then
      table.insert(names, 'locked')
    end
    for _, name in ipairs(names) do
      refused(uri(name))
    end
  end)

  it('of a large buffer is refused before it is copied', function()
    require('mcp-tools').setup({ limits = { resource = 2048 } })
    vim.cmd.edit(project.root .. '/open.txt')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { ('x'):rep(2047) })
    t.eq(2048, #project.contents('nvim://buffer/open.txt').text)
    local lines = t.lines(200000, 'line %d')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
    vim.cmd.normal({ 'ggVG\27', bang = true })
    collectgarbage()
    collectgarbage('stop')
    local before = collectgarbage('count')
    t.eq('too_large', project.run('resource', 'nvim://buffer/open.txt').error.code)
    local used = collectgarbage('count') - before
    collectgarbage('restart')
    t.ok(used < 1024, ('%d KiB were made'):format(used))
  end)

  it('is refused one byte above the limit, without being read', function()
    require('mcp-tools').setup({ limits = { resource = 2048 } })
    project.write('fits', ('x'):rep(2048))
    t.eq(2048, #project.contents(uri('fits')).text)
    project.write('big', ('x'):rep(2049))
    t.eq('too_large', project.run('resource', uri('big')).error.code)
    local fd = assert(vim.uv.fs_open(project.root .. '/huge', 'w', 420))
    vim.uv.fs_ftruncate(fd, 2 ^ 40)
    vim.uv.fs_close(fd)
    t.eq('too_large', project.run('resource', uri('huge')).error.code)
    project.write('blob.png', ('\0'):rep(1537)) -- 2 052 bytes as base64
    t.eq('too_large', project.run('resource', uri('blob.png')).error.code)
    project.write('.env', ('x'):rep(3000))
    refused(uri('.env'))
  end)

  it('notifies when other processes write or rename the file', function()
    local path = project.write('a.txt', 'x')
    local heard = watched(uri('a.txt'))
    heard.after(function() project.write('a.txt', 'y') end)
    heard.after(function() vim.uv.fs_rename(project.write('a.tmp', 'z'), path) end)
    heard.stop()
  end)

  it('completes files in the project', function()
    project.write('lua/a.lua', 'x')
    project.write('lua/b/c.lua', 'x')
    project.write('lua/.env', 'x')
    local ref = { type = 'resource', uri = 'file:///{+path}' }
    local base = project.root:sub(2) .. '/'
    t.eq({ base }, project.complete(ref, 'path', ''))
    t.eq({ base .. 'lua/a.lua', base .. 'lua/b/' }, project.complete(ref, 'path', base .. 'lua/'))
    t.eq({ {}, {} }, { project.complete(ref, 'path', 'etc/'), (project.complete(ref, 'path', base .. '../')) })
  end)
end)
