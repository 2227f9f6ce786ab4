-- slow
local core = require('mcp-tools.core')
local project = require('editor_project')
local t = require('helpers')
local utf8 = require('mcp-tools.util.utf8')

local namespace = vim.api.nvim_create_namespace('prompts-spec')

local git = project.git

--- A real repository with one commit.
local function repository()
  project.init()
  project.write('a.lua', 'local M = {}\n\nfunction M.run(x)\n  return x\nend\n\nreturn M\n')
  project.write('.env', 'KEY=hidden')
  project.commit('first')
end

local function failure(name, args) return t.ok(project.run('prompt', name, args).error) end

--- The state that a prompt must not change.
local function state()
  local buffers = {}
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    table.insert(buffers, { bufnr, vim.api.nvim_buf_get_changedtick(bufnr), vim.bo[bufnr].modified })
  end
  local files = {}
  for path in vim.fs.dir(project.root, { depth = 5 }) do
    local stat = vim.uv.fs_stat(project.root .. '/' .. path)
    files[path] = stat and stat.type == 'file' and (stat.mtime.sec .. '.' .. stat.mtime.nsec) or 'other'
  end
  return {
    buffers = buffers,
    files = files,
    windows = vim.api.nvim_list_wins(),
    current = vim.api.nvim_get_current_buf(),
    cursor = vim.api.nvim_win_get_cursor(0),
    mode = vim.fn.mode(),
    registers = { vim.fn.getreg('"'), vim.fn.getreg('/') },
    marks = { vim.fn.getpos("'<"), vim.fn.getpos("'>") },
    quickfix = vim.fn.getqflist({ changedtick = 0 }),
    jumps = #vim.fn.getjumplist()[1],
  }
end

project.each()

describe('every bundled prompt', function()
  it('works in an empty editor and with files, and changes nothing', function()
    local function all()
      local before = state()
      for _, prompt in ipairs(core.get().registry:list('prompts')) do
        local args = {}
        for _, arg in ipairs(prompt.args) do
          args[arg.name] = arg.required and 'run' or nil
        end
        local outcome = project.run('prompt', prompt.name, args)
        local expected = outcome.error and { not_found = true, tool_error = true } or {}
        t.ok(not outcome.error or expected[outcome.error.code], prompt.name .. ': ' .. vim.inspect(outcome.error))
      end
      t.eq(before, state())
    end
    all()
    repository()
    vim.cmd.edit(project.root .. '/a.lua')
    vim.cmd('normal! Vj\27')
    vim.diagnostic.set(namespace, 0, { { lnum = 0, col = 0, message = 'x' } })
    vim.api.nvim_buf_set_lines(0, -1, -1, false, { '-- unsaved' })
    all()
  end)

  it('is UTF-8, even if names and texts are not', function()
    repository()
    local path = project.write('gr\252n.lua', '-- \252\nfunction run()\n')
    local function all(base)
      for _, prompt in ipairs(core.get().registry:list('prompts')) do
        local given = { symbol = 'run', query = 'run', base = base }
        local outcome = project.run('prompt', prompt.name, given)
        t.ok(outcome.payload, prompt.name .. ': ' .. vim.inspect(outcome.error))
        t.eq(nil, utf8.invalid_at(outcome.payload.text), prompt.name)
      end
    end
    vim.cmd.edit(vim.fn.fnameescape(path))
    vim.cmd('normal! V\27')
    vim.diagnostic.set(namespace, 0, { { lnum = 0, col = 0, message = 'what is \252?' } })
    all()
    git('add', '-A')
    git('commit', '-q', '-m', 'second')
    project.write('gr\252n.lua', '-- \252\nfunction run(x)\n')
    all('HEAD^')
  end)
end)

describe('explain_diagnostics and fix_diagnostics', function()
  before_each(function()
    vim.cmd.edit(project.write('a.lua', 'one\ntwo\nthree\n'))
    vim.diagnostic.set(namespace, 0, {
      { lnum = 1, col = 1, severity = vim.diagnostic.severity.ERROR, message = 'is\nbad', source = 'src', code = 12 },
      { lnum = 2, col = 0, severity = vim.diagnostic.severity.HINT, message = 'is mild' },
    })
  end)

  it('show each diagnostic with the code around it', function()
    for _, name in ipairs({ 'explain_diagnostics', 'fix_diagnostics' }) do
      local text = project.prompt(name)
      t.matches({ 'a%.lua:2:2: error: is / bad %[src 12%]', '>    2  two', 'is mild' }, text)
    end
  end)

  it('show long lines and NUL bytes', function()
    vim.cmd.edit(project.write('b.log', ('ä'):rep(300) .. '\0\nx\n'))
    vim.diagnostic.set(namespace, 0, { { lnum = 1, col = 0, message = 'here' } })
    local text = project.prompt('explain_diagnostics', { path = 'b.log' })
    t.matches('    1  ' .. ('ä'):rep(200) .. '…\n', text)
  end)

  it('read no more of a long file than they show', function()
    local lines, list = t.lines(200000, 'line %d'), {}
    vim.cmd.edit(project.write('b.log', table.concat(lines, '\n')))
    for i = 1, 40 do
      list[i] = { lnum = 199960 + i, end_lnum = 199999, col = 0, message = 'here' }
    end
    vim.diagnostic.set(namespace, 0, list)
    local text = project.prompt('explain_diagnostics', { path = 'b.log' })
    t.matches('\n 199959  line 199959\n 199960  line 199960\n.-\n>199962  line 199962\n', text)
  end)

  it('accept a file and a severity', function()
    vim.cmd.edit(project.write('b.lua', 'other'))
    local text = project.prompt('explain_diagnostics', { path = 'a.lua', severity = 'warning' })
    t.matches('bad', text)
    t.ok(not text:find('mild'))
    t.matches('no diagnostics', project.prompt('explain_diagnostics', { path = 'b.lua' }))
    t.matches('not open', failure('explain_diagnostics', { path = 'c.lua' }).message)
    t.matches('outside', failure('explain_diagnostics', { path = '/etc/passwd' }).message)
    t.matches('severity', failure('explain_diagnostics', { severity = 'loud' }).message)
    local ref = { type = 'prompt', name = 'fix_diagnostics' }
    t.eq({ 'a.lua', 'b.lua' }, project.complete(ref, 'path', ''))
    t.eq({ 'warning' }, project.complete(ref, 'severity', 'W'))
  end)

  it('withhold the text of sensitive files', function()
    vim.cmd.edit(project.write('.env', 'KEY=hidden'))
    vim.diagnostic.set(namespace, 0, { { lnum = 0, col = 0, message = 'hidden unused' } })
    local text = project.prompt('fix_diagnostics')
    t.ok(not text:find('hidden', 1, true))
    t.matches('%.env has 1 more', text)
  end)
end)

describe('review_changes', function()
  before_each(repository)

  it('shows the diff of a real repository, and untracked and unsaved files', function()
    t.matches('Nothing that git tracks has changed', project.prompt('review_changes'))
    project.write('a.lua', 'local M = {}\n\nfunction M.run(x)\n  return x + 1\nend\n\nreturn M\n')
    project.write('.env', 'KEY=hidden2')
    project.write('new file.lua', 'x')
    vim.cmd.edit(project.root .. '/a.lua')
    vim.api.nvim_buf_set_lines(0, 0, 0, false, { '-- unsaved' })
    local text = project.prompt('review_changes')
    t.matches({ '%-  return x\n%+  return x %+ 1', 'Not tracked by git.*new file%.lua' }, text)
    t.matches({ 'contain secrets: %.env', 'unsaved changes.*: a%.lua' }, text)
    t.ok(not text:find('hidden', 1, true))
  end)

  it('compares with another revision, one file or directory', function()
    git('branch', 'base')
    project.write('sub/b.lua', 'b\n')
    project.write('a.lua', 'changed\n')
    git('add', '-A')
    git('commit', '-q', '-m', 'second')
    t.matches('Nothing', project.prompt('review_changes'))
    local text = project.prompt('review_changes', { base = 'base' })
    t.matches({ '%+changed', '%+b' }, text)
    text = project.prompt('review_changes', { base = 'base', path = 'sub' })
    t.matches('%+b', text)
    t.ok(not text:find('+changed', 1, true))
    local ref = { type = 'prompt', name = 'review_changes' }
    t.eq({ 'base' }, project.complete(ref, 'base', 'ba'))
    t.ok(vim.list_contains(project.complete(ref, 'base', ''), 'HEAD'))
    t.eq({ 'sub/' }, project.complete(ref, 'path', 'su'))
  end)

  it('refuses a revision that could be something else', function()
    local option = '--output=' .. project.root .. '/x'
    for _, base in ipairs({ option, '-O/x', 'a..b c', 'x;y', '$(x)', 'a\nb', 'HEAD:.env', ':/x' }) do
      t.eq('validation_error', failure('review_changes', { base = base }).code)
    end
    t.eq(nil, vim.uv.fs_stat(project.root .. '/x'))
    t.eq('tool_error', failure('review_changes', { base = 'no-such-branch' }).code)
    t.eq('not_found', failure('review_changes', { path = '../' }).code)
    t.eq('not_found', failure('review_changes', { path = '.env' }).code)
  end)

  it('reports a missing repository or git', function()
    vim.fn.delete(project.root .. '/.git', 'rf')
    vim.fn.mkdir(project.root .. '/.git')
    t.matches('cannot read the changes: .*[Nn]ot a git repository', failure('review_changes').message)
    git('init', '-q')
    local path = vim.env.PATH
    vim.env.PATH = project.base
    local err = failure('review_changes')
    vim.env.PATH = path
    t.matches('cannot run git', err.message)
  end)
end)

describe('explain_selection', function()
  it('has the selection and the lines around it', function()
    vim.cmd.edit(project.write('a.lua', 'one\ntwo ```\nthree\nfour\n'))
    vim.bo.filetype = 'lua'
    t.matches('nothing is selected', failure('explain_selection').message)
    vim.cmd('normal! 2GVj\27')
    local text = project.prompt('explain_selection', { question = 'Why so?' })
    t.matches({ '^Why so%?', 'a%.lua, lines 2 to 3', '````lua\ntwo ```\nthree\n````', '    4  four' }, text)
  end)

  it('has a fence that is longer than those in its text, in linear time', function()
    for char, other in pairs({ ['`'] = '~', ['~'] = '`' }) do
      vim.cmd.edit(project.write('ticks.md', char:rep(60000) .. '\n' .. other:rep(3) .. '\n'))
      vim.cmd.normal({ 'VG\27', bang = true })
      local text = t.fast(project.prompt, 'explain_selection')
      t.matches('\n' .. (char == '`' and '~~~~' or '````') .. '\n*$', text)
    end
  end)

  it('withholds sensitive text', function()
    vim.cmd.edit(project.write('.env', 'KEY=hidden'))
    vim.cmd('normal! V\27')
    t.matches('withheld: its file is sensitive', failure('explain_selection').message)
  end)
end)

describe('write_tests and analyze_module', function()
  local text = 'local M = {}\n\nfunction M.run(x)\n  return x\nend\n\nfunction M.stop() end\n\nreturn M\n'

  it('find a symbol in the current file, or in a closed one', function()
    local path = project.write('a.lua', text)
    vim.cmd('filetype on')
    t.matches('the symbols of the current buffer are not known', failure('write_tests', { symbol = 'run' }).message)
    local got = project.prompt('write_tests', { symbol = 'run', path = 'a.lua' })
    t.matches('`run` in a%.lua %(line 3%)', got)
    t.ok(got:find(text, 1, true))
    vim.cmd.edit(path)
    vim.api.nvim_buf_set_lines(0, 0, 0, false, { '-- unsaved' })
    got = project.prompt('write_tests', { symbol = 'M.stop' })
    t.matches({ '%(line 8%)', '%-%- unsaved' }, got)
    local message = failure('write_tests', { symbol = 'zebra' }).message
    t.matches('no "zebra" in a.lua; there is M.run %(line 4%), M.stop', message)
    t.eq('validation_error', failure('write_tests').code)
    local ref = { type = 'prompt', name = 'write_tests' }
    t.eq({ 'M.run', 'M.stop' }, project.complete(ref, 'symbol', 'M'))
    t.eq({ 'M.run', 'M.stop' }, project.complete(ref, 'symbol', '', { path = 'a.lua' }))
    t.eq({}, project.complete(ref, 'symbol', '', { path = '../x' }))
    t.eq({ 'a.lua' }, project.complete(ref, 'path', 'a'))
  end)

  it('show the beginning of a long symbol', function()
    local lines = t.lines(2000, '    line%d = 1')
    lines[1] = 'class Long:'
    vim.cmd.edit(project.write('a.py', table.concat(lines, '\n')))
    local range = { start = { line = 0, character = 0 }, ['end'] = { line = 1999, character = 0 } }
    require('lsp_double').start(0, project.root, { documentSymbolProvider = true }, {
      ['textDocument/documentSymbol'] = { { name = 'Long', kind = 5, range = range, selectionRange = range } },
    })
    local shown = project.prompt('write_tests', { symbol = 'Long' })
    t.matches('     1  class Long:\n     2  .*\n   400      line400 = 1\n```', shown)
    t.ok(not shown:find('   401  ', 1, true))
  end)

  it('return the outline and the text as a resource', function()
    vim.cmd.edit(project.write('a.lua', text))
    local outcome = project.run('prompt', 'analyze_module')
    local messages = vim.json.decode(outcome.payload.text).messages
    t.matches('%- M%.run %(line 3%)', messages[1].content.text)
    t.eq({ uri = 'nvim://buffer/a.lua', mimeType = 'text/plain', text = text }, messages[2].content.resource)
    t.eq(text, project.contents(messages[2].content.resource.uri).text)
  end)

  --- Runs a prompt, which takes a few ms; with quadratic time it would take seconds.
  local function soon(name, args) return t.fast(project.run, 'prompt', name, args) end

  it('take little time, whatever a file contains', function()
    local files = {
      ['spaces.js'] = 'export' .. (' '):rep(20000) .. 'x\n',
      ['const.js'] = 'const a = ' .. (' '):rep(20000) .. 'x\n',
      ['lines.txt'] = ('\n'):rep(4 * 1024 * 1024),
      ['nul.c'] = 'int a;\n' .. ('x'):rep(9000) .. '\0' .. ('y'):rep(500) .. '\nint run(int a)\n',
    }
    for name, bytes in pairs(files) do
      project.write(name, bytes)
      local args = { path = name }
      t.eq(nil, soon('analyze_module', args).error)
      t.matches('^symbol: ', soon('write_tests', { path = name, symbol = 'zebra' }).error.message)
    end
    t.eq(nil, soon('write_tests', { path = 'nul.c', symbol = 'run' }).error)
    t.eq(nil, soon('write_tests', { path = 'nul.c', symbol = 'xxxx' }).error)
    for name in pairs(files) do
      vim.cmd.edit(name)
      local ref = { type = 'prompt', name = 'write_tests' }
      t.ok(project.complete(ref, 'symbol', ''))
      t.eq(nil, soon('analyze_module').error)
    end
  end)

  it('report unknown symbols of a file', function()
    vim.cmd.edit(project.write('a.js', 'x = 1\n'))
    t.matches('the symbols of a.js are not known', failure('write_tests', { symbol = 'late' }).message)
    t.matches('the symbols of a.js are not known', failure('write_tests', { symbol = 'late', path = 'a.js' }).message)
  end)

  it('refuse files that must not be read', function()
    project.write('.env', 'KEY=hidden')
    project.write('a.bin', 'a\0b')
    project.write('sub/x', 'x')
    for path, why in pairs({
      ['.env'] = 'sensitive',
      ['../x'] = 'outside',
      ['/etc/passwd'] = 'outside',
      ['none.lua'] = 'there is no file',
      ['a.bin'] = 'binary file',
      ['.git'] = 'sensitive',
      ['sub'] = 'not a file',
    }) do
      t.matches(why, failure('analyze_module', { path = path }).message)
    end
  end)
end)

describe('debug_stopped', function()
  after_each(function() package.loaded.dap = nil end)

  --- A minimal implementation of nvim-dap.
  local function dap(session) package.loaded.dap = { session = t.returns(session) } end

  it('reports what is missing', function()
    t.matches('nvim%-dap is not loaded', project.prompt('debug_stopped'))
    dap(nil)
    t.matches('has no session', project.prompt('debug_stopped'))
    dap({})
    t.matches('the program is running', project.prompt('debug_stopped'))
  end)

  it('shows stack, variables and code, without secrets', function()
    local path = project.write('a.py', 'x = 1\ny = 2\n')
    local answers = {
      stackTrace = {
        stackFrames = {
          { id = 7, name = 'inner', line = 2, source = { path = path } },
          { id = 8, name = 'outer', line = 1, source = { path = path } },
        },
      },
      scopes = { scopes = { { name = 'Locals', variablesReference = 3 }, { name = 'Globals', expensive = true } } },
      variables = { variables = { { name = 'x', value = '1' }, { name = 'api_key', value = "'s3cret'" } } },
    }
    dap({
      stopped_thread_id = 1,
      current_frame = answers.stackTrace.stackFrames[1],
      request = function(_, command, _, done)
        vim.schedule(function() done(nil, answers[command]) end)
      end,
    })
    local text = project.prompt('debug_stopped', { question = 'Why?' })
    t.matches({ 'Why%?', '> inner %(a%.py:2%)', 'x = 1', '>    2  y = 2' }, text)
    t.ok(not text:find('s3cret', 1, true) and not text:find('Globals', 1, true))
  end)

  it('does not wait long for an adapter that does not answer', function()
    dap({ stopped_thread_id = 1, request = function() end })
    t.matches('did not answer within 3000 ms', project.prompt('debug_stopped'))
  end)
end)

describe('project_status and verify_setup', function()
  it('summarize the editor and the repository', function()
    repository()
    project.write('a.lua', 'changed')
    vim.cmd.edit(project.root .. '/a.lua')
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'x' })
    local text = project.prompt('project_status')
    t.matches({ '## main\n M a%.lua', 'a%.lua %(unsaved%) %(on screen%)' }, text)
    vim.fn.delete(project.root .. '/.git', 'rf')
    t.matches('git status failed', project.prompt('project_status'))
  end)

  it('redact secrets in the title of the quickfix list', function()
    vim.cmd.edit(project.write('.env', 'KEY=hidden-value'))
    vim.fn.setqflist({}, ' ', { title = ':grep hidden-value', items = { { text = 'x' } } })
    t.matches('1 entries :grep %[secret%]', project.prompt('project_status'))
  end)

  it('show the setup, without the token', function()
    require('mcp-tools.config').change({ tools = false })
    local text = project.prompt('verify_setup')
    t.matches({ 'Bridge: stopped', '10 prompts', 'No bundled tools are on' }, text)
  end)
end)
