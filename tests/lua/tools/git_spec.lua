-- slow
local p = require('tools_project')
local project = require('editor_project')
local t = require('helpers')

before_each(function()
  p.open({ 'git' })
  p.init()
  p.write('a.lua', 'one\ntwo\nthree\n')
  p.write('sub/b.lua', 'b\n')
  p.write('.env', 'KEY=hidden\n')
  p.commit('first\n\nwith a body, password=letmein')
end)
after_each(p.close)

local function no_secret(value)
  local text = vim.inspect(value)
  t.ok(not text:find('hidden', 1, true), text)
  return value
end

describe('git_status', function()
  it('returns the branch and files by kind of change', function()
    p.write('a.lua', 'one\n2\nthree\n')
    p.git('add', 'a.lua')
    p.write('a.lua', 'one\n3\nthree\n')
    p.git('mv', 'sub/b.lua', 'sub/c d.lua')
    p.write('new/x.lua', '')
    p.write('new/ü.lua', '')
    t.eq('main; 3 files\nMM a.lua\nR  sub/b.lua -> "sub/c d.lua"\n?? new/', p.text('git_status'))
    t.matches('^1 file %+1 %-1\ndiff %-%-git a/a.lua', p.text('git_diff'))
  end)

  it('is paged, and names files with unsaved changes', function()
    for i = 1, 5 do
      p.write(i .. '.txt', '')
    end
    vim.cmd.edit(p.root .. '/a.lua')
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'unsaved' })
    t.matches(
      '^main; 5 files; 1%-2 shown, offset=2 continues\n%?%? 1.txt\n%?%? 2.txt\n',
      p.text('git_status', { limit = 2 })
    )
    local last = p.text('git_status', { limit = 2, offset = 4 })
    t.eq('main; 5 files; 5-5 shown\n?? 5.txt\nunsaved in the editor: a.lua', last)
  end)

  it('returns an unfinished merge, and the state of the other branch', function()
    p.git('checkout', '-q', '-b', 'other')
    p.write('a.lua', 'theirs\n')
    p.commit('theirs')
    p.git('checkout', '-q', 'main')
    p.write('a.lua', 'ours\n')
    p.commit('ours')
    p.git('branch', '-q', '--set-upstream-to=other')
    pcall(p.git, 'merge', 'other')
    t.eq('main...other [ahead 1, behind 1]; merge in progress; 1 file\nUU a.lua', p.text('git_status'))
    t.matches('theirs', p.ok('git_diff').diff)
  end)

  it('covers only the directory of the project', function()
    p.write('a.lua', 'x')
    p.write('sub/b.lua', 'x')
    vim.fn.mkdir(p.root .. '/sub/.jj')
    vim.cmd.cd(p.root .. '/sub')
    p.git('config', 'status.relativePaths', 'false')
    t.eq({ ' M b.lua' }, p.ok('git_status').files)
    local diff = p.ok('git_diff')
    t.eq(1, diff.files)
    t.matches('a/b%.lua', diff.diff)
    local text = project.prompt('project_status')
    t.matches('## main\n M b%.lua', text)
    t.ok(not text:find('a.lua', 1, true))
  end)

  it('works before the first commit', function()
    vim.fn.delete(p.root .. '/.git', 'rf')
    p.git('init', '-q', '-b', 'new')
    p.git('add', 'a.lua')
    t.matches('^No commits yet on new; 3 files\nA  a.lua\n', p.text('git_status'))
    t.matches('%+one', p.ok('git_diff', { staged = true }).diff)
    p.fails('not_found', 'HEAD is not a commit', 'git_log')
    p.fails('not_found', 'HEAD is not a commit', 'git_show')
  end)

  it('fails if there is no repository', function()
    vim.fn.delete(p.root .. '/.git', 'rf')
    vim.fn.mkdir(p.root .. '/.jj')
    for _, name in ipairs({ 'git_status', 'git_diff', 'git_log', 'git_show' }) do
      p.fails('not_found', 'not a git repository', name)
    end
  end)
end)

describe('git_diff', function()
  it('compares working tree, index and commits', function()
    p.write('a.lua', 'one\nstaged\nthree\n')
    p.git('add', 'a.lua')
    p.write('a.lua', 'one\nworking\nthree\n')
    local diff = p.ok('git_diff')
    t.matches('%-staged\n%+working', diff.diff)
    t.eq({ 'full', 1, 1, 1 }, { diff.shown, diff.files, diff.added, diff.deleted })
    t.matches('%-two\n%+staged', p.ok('git_diff', { staged = true }).diff)
    t.matches('%-two\n%+working', p.ok('git_diff', { base = 'HEAD' }).diff)
    p.commit('second')
    t.eq('', p.ok('git_diff').diff)
    t.matches('%-two\n%+working', p.ok('git_diff', { base = 'HEAD~1', target = 'HEAD' }).diff)
    t.matches('%-working\n%+two', p.ok('git_diff', { base = 'HEAD', target = 'HEAD~1' }).diff)
    p.git('checkout', '-q', '-b', 'side', 'HEAD~1')
    p.write('sub/b.lua', 'side\n')
    p.commit('side')
    local since = p.ok('git_diff', { base = 'main', target = 'side', merge_base = true }).diff
    t.matches('%+side', since)
    t.ok(not since:find('working', 1, true))
  end)

  it('covers one file or directory, by path or buffer', function()
    p.write('a.lua', 'x\n')
    p.write('sub/b.lua', 'y\n')
    vim.cmd.edit(p.root .. '/sub/b.lua')
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'unsaved' })
    for _, args in ipairs({ { path = 'sub' }, { path = p.root .. '/sub/b.lua' }, { bufnr = 0 } }) do
      local diff = p.ok('git_diff', args)
      t.eq({ 1, { 'sub/b.lua' } }, { diff.files, diff.unsaved })
      t.matches('%+y', diff.diff)
    end
    t.eq(nil, p.ok('git_diff', { path = 'a.lua' }).unsaved)
  end)

  it('withholds and names sensitive files', function()
    p.write('.env', 'KEY=hidden2\n')
    p.write('a.lua', 'x\n')
    local diff = no_secret(p.ok('git_diff'))
    t.eq({ { '.env' }, 2 }, { diff.withheld, diff.files })
    p.commit('both')
    t.eq({ '.env' }, no_secret(p.ok('git_show')).withheld)
    t.eq({ '.env' }, no_secret(p.ok('git_diff', { base = 'HEAD~1', target = 'HEAD' })).withheld)
  end)

  it('is shortened to no context, then counts, then a total', function()
    local lines = {}
    for i = 1, 200 do
      lines[i] = ('line %d'):format(i)
    end
    p.write('long.txt', table.concat(lines, '\n') .. '\n')
    for i = 1, 60 do
      p.write(('many/%d.txt'):format(i), 'x\n')
    end
    p.commit('many')
    for i = 10, 200, 20 do
      lines[i] = 'new'
    end
    p.write('long.txt', table.concat(lines, '\n') .. '\n')
    local diff = p.ok('git_diff', { max_bytes = 1000 })
    t.eq({ 'without context', 10, 10 }, { diff.shown, diff.added, diff.deleted })
    t.matches('path', diff.narrow)
    t.matches('%-line 10\n%+new\n@@', diff.diff)
    for i = 1, 60 do
      p.write(('many/%d.txt'):format(i), 'y\n')
    end
    diff = p.ok('git_diff', { max_bytes = 2000 })
    t.eq({ 'counts per file', nil, 61 }, { diff.shown, diff.diff, diff.files })
    t.matches('^%+10 %-10 long%.txt\n%+1 %-1 many/1%.txt\n', diff.counts)
    diff = p.ok('git_diff', { max_bytes = 1000 })
    t.eq({ 'total', nil, 61, 70 }, { diff.shown, diff.counts, diff.files, diff.added })
  end)

  it('refuses names that are not one commit', function()
    local blob = p.git('rev-parse', 'HEAD:.env')
    p.git('tag', 'of-blob', blob)
    p.git('update-ref', 'refs/evil', blob)
    p.write('a.lua', '2\n')
    for _, base in ipairs({ blob, blob:sub(1, 12), 'of-blob', 'refs/evil', 'HEAD^{tree}', 'nothing' }) do
      for _, path in ipairs({ '.', 'a.lua' }) do
        p.fails('not_found', 'base: .* is not a commit of this', 'git_diff', { base = base, path = path })
      end
      t.matches('is not a commit of this', project.run('prompt', 'review_changes', { base = base }).error.message)
    end
    p.git('tag', '-a', '-m', 'x', 'of-commit')
    for _, base in ipairs({ 'HEAD', 'main', '@', 'HEAD~0', 'of-commit', p.git('rev-parse', 'HEAD') }) do
      t.matches('%-one\n%-two\n%-three\n%+2', p.ok('git_diff', { base = base }).diff)
    end
    p.fails('not_found', 'revision: .* is not a commit', 'git_show', { revision = blob })
    p.fails('validation_error', '^base: .* is not the name of one revision', 'git_diff', { base = '--output=/tmp/x' })
    p.fails('not_found', 'is not a commit', 'git_log', { revision = 'main..HEAD' })
    p.fails('validation_error', '^target: needs base', 'git_diff', { target = 'HEAD' })
    p.fails('validation_error', '^target: .*staged', 'git_diff', { base = 'HEAD', target = 'HEAD', staged = true })
    p.fails('validation_error', '^merge_base: needs base', 'git_diff', { merge_base = true })
    p.fails('not_found', 'no buffer 999', 'git_diff', { bufnr = 999 })
    p.fails('access_denied', 'outside the project', 'git_diff', { path = '/etc' })
    p.fails('access_denied', '', 'git_diff', { path = '.env' })
  end)
end)

describe('a changed file', function()
  --- The diff with HEAD, without lines of sensitive files.
  local function diff(args)
    return no_secret(p.ok('git_diff', vim.tbl_extend('error', { base = 'HEAD' }, args or {})))
  end

  it('is checked by its own path, if a file became a directory or the reverse', function()
    p.write('config', 'file\n')
    p.write('folder/.env', 'KEY=hidden\n')
    p.write('folder/b.lua', 'b\n')
    p.commit('some')
    vim.fn.delete(p.root .. '/config')
    vim.fn.delete(p.root .. '/folder', 'rf')
    p.write('config/.env', 'KEY=hidden\n')
    p.write('config/c.lua', 'c\n')
    p.write('folder', 'file\n')
    p.git('add', '-A')
    for _, path in ipairs({ '.', 'config', 'folder' }) do
      local found = diff({ path = path })
      t.matches('/%.env$', found.withheld[1])
      t.eq(path ~= 'folder', found.diff:find('\n%-file\n') ~= nil)
      t.eq(path ~= 'folder', found.diff:find('\n%+c\n') ~= nil)
      t.eq(path ~= 'config', found.diff:find('\n%-b\n') ~= nil)
    end
  end)

  it('is checked by both names if it was renamed', function()
    p.git('config', 'diff.renames', 'copies')
    p.git('mv', '.env', 'b.lua')
    p.git('mv', 'a.lua', 'id_rsa')
    local found = p.ok('git_diff', { base = 'HEAD' })
    t.eq({ '.env', 'id_rsa' }, found.withheld)
    t.ok(not found.diff:find('[ab]/%.env') and not found.diff:find('id_rsa', 1, true), found.diff)
    t.matches('\n%-one\n', found.diff)
  end)

  it('is shown whatever its name is, and only if its text has changed', function()
    local names = { 'ü.lua', 'a b.lua', 'a"b\\.lua', 'line\nbreak\t\1\127.lua', '-dash', ':(glob)*', 'x => y', '*' }
    for _, name in ipairs(names) do
      p.write(name, 'old\n')
    end
    p.commit('some')
    vim.uv.fs_utime(p.root .. '/.env', 1, 1)
    vim.uv.fs_utime(p.root .. '/a.lua', 1, 1)
    t.eq({ '', 0 }, { diff().diff, diff().files })
    vim.uv.fs_chmod(p.root .. '/a.lua', 493)
    t.matches('\nnew mode 100755', diff().diff)
    for i, name in ipairs(names) do
      p.write(name, ('new %d;\n'):format(i))
    end
    local found = diff()
    for i in ipairs(names) do
      t.matches(('\n%%+new %d;\n'):format(i), found.diff)
    end
    t.eq(nil, found.withheld)
    p.write('un\ntracked', '')
    t.matches('\nNot tracked by git[^\n]*: un%?tracked\n', project.prompt('review_changes'))
  end)

  it('is withheld if it is outside of the project', function()
    p.write(p.base .. '/secret.txt', 'hidden\n')
    p.write('xx/secret.txt', 'hidden\n')
    p.git('add', '-A')
    vim.fn.delete(p.root .. '/xx', 'rf')
    local path = p.root .. '/.git/index'
    local file = assert(io.open(path, 'rb'))
    local index = file:read('*a'):gsub('xx/secret%.txt', '../secret.txt')
    file:close()
    p.write(path, index)
    p.write('a.lua', 'x\n')
    local found = diff()
    t.eq({ '../secret.txt' }, found.withheld)
    t.matches('%+x', found.diff)
  end)

  it('is left out of a diff that is too large, with a note', function()
    for i = 1, 2100 do
      p.write(('many/%d.txt'):format(i), ('x'):rep(300))
    end
    p.git('add', '-A')
    t.eq(true, p.ok('git_diff', { staged = true }).more_files)
    local text = project.prompt('review_changes')
    t.matches('The diff is cut', text)
    t.matches('many/1%.txt', text)
    t.ok(#text < 270 * 1024)
  end)
end)

describe('git_log', function()
  it('returns commits in pages', function()
    p.write('a.lua', 'x\n')
    p.commit('second')
    local log = p.ok('git_log', { limit = 1 })
    t.eq({ 'second', 'A Person', 1 }, { log.commits[1].subject, log.commits[1].author, log.next_offset })
    t.matches('^%d%d%d%d%-%d%d%-%d%dT', log.commits[1].date)
    t.matches('^cut; offset=1 continues\n%x+ %S+ A Person: %(HEAD %-> main%) second$', p.text('git_log', { limit = 1 }))
    t.matches('^%x+ %d[%d%-]+T%S+ A Person: first$', p.text('git_log', { offset = 1 }))
  end)

  it('filters by file, range, author, message and date', function()
    p.write('a.lua', 'x\n')
    p.commit('Second thing')
    local function subjects(args)
      return vim.tbl_map(function(commit)
        return commit.subject
      end, p.ok('git_log', args).commits)
    end
    t.eq({ 'first' }, subjects({ path = 'sub' }))
    t.eq({ 'Second thing' }, subjects({ base = 'HEAD~1' }))
    t.eq({ 'first' }, subjects({ revision = 'HEAD~1' }))
    t.eq({ 'Second thing' }, subjects({ grep = 'second' }))
    t.eq({}, subjects({ author = 'nobody' }))
    t.eq({}, subjects({ since = '2090-01-01' }))
  end)
end)

describe('git_blame', function()
  it('continues a long answer at next_line', function()
    p.write('long.txt', (('x'):rep(40000) .. '\n'):rep(150))
    p.commit('long')
    local part = p.ok('git_blame', { path = 'long.txt' })
    local last = part.runs[#part.runs].end_line
    t.ok(last < 150)
    t.eq(last + 1, part.next_line)
  end)

  it('returns ranges of lines', function()
    p.write('a.lua', 'one\n2\n3\n')
    p.commit('second')
    local runs = p.ok('git_blame', { path = 'a.lua' }).runs
    t.eq({ 1, 1, 'first' }, { runs[1].start_line, runs[1].end_line, runs[1].summary })
    t.eq({ 2, 3, 'second' }, { runs[2].start_line, runs[2].end_line, runs[2].summary })
    t.matches('^1: %x+ %S+ A Person: first\n2%-3: %x+ %S+ A Person: second$', p.text('git_blame', { path = 'a.lua' }))
    t.eq('first', p.ok('git_blame', { path = 'a.lua', revision = 'HEAD~1' }).runs[1].summary)
    local part = p.ok('git_blame', { path = 'a.lua', start_line = 2, limit = 1 })
    t.eq({ 1, 2, 3 }, { #part.runs, part.runs[1].start_line, part.next_line })
    t.eq(nil, p.ok('git_blame', { path = 'a.lua', start_line = 2, end_line = 3 }).next_line)
  end)

  it('counts lines as in the buffer', function()
    vim.cmd.edit(p.root .. '/a.lua')
    vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'unsaved' })
    local runs = p.ok('git_blame', { bufnr = 0 }).runs
    t.eq({ nil, 1, 2, 4 }, { runs[1].commit, runs[1].end_line, runs[2].start_line, runs[2].end_line })
  end)

  it('refuses invalid arguments', function()
    p.fails('validation_error', 'exactly one of path and bufnr', 'git_blame', {})
    p.fails('validation_error', 'end_line', 'git_blame', { path = 'a.lua', start_line = 3, end_line = 2 })
    p.fails('validation_error', 'start_line: 9 is beyond the end; it has only 3 lines', 'git_blame', {
      path = 'a.lua',
      start_line = 9,
    })
    p.fails('tool_error', 'no such path', 'git_blame', { path = 'none.lua' })
    p.fails('access_denied', '', 'git_blame', { path = '.env' })
  end)
end)

describe('git_show', function()
  it('returns a commit with its changes', function()
    p.write('a.lua', 'x\n')
    p.write('sub/b.lua', 'y\n')
    p.commit('second\n\nwhy')
    local shown = p.ok('git_show')
    t.eq({ 'second', 'why', 2, 'full' }, { shown.subject, shown.body, shown.files, shown.shown })
    t.matches('%-two', shown.diff)
    t.eq(1, p.ok('git_show', { path = 'sub' }).files)
    local first = no_secret(p.ok('git_show', { revision = 'HEAD~1' }))
    t.eq({ 'first', 3, { '.env' } }, { first.subject, first.files, first.withheld })
    t.matches('new file', first.diff)
    t.matches('^with a body', first.body)
    t.ok(not first.body:find('letmein', 1, true))
    t.matches('^%x+ %S+ A Person\n\nsecond\n\nwhy\n\n2 files %+2 %-4\ndiff ', p.text('git_show'))
  end)

  it('returns the changes of a merge against its first parent', function()
    p.git('checkout', '-q', '-b', 'side')
    p.write('side.lua', 'side\n')
    p.commit('side')
    p.git('checkout', '-q', 'main')
    p.write('main.lua', 'main\n')
    p.commit('main')
    p.git('merge', '-q', '-m', 'merged', 'side')
    local shown = p.ok('git_show')
    t.eq({ 'merged', 1, 2 }, { shown.subject, shown.files, #shown.parents })
    t.matches('%+side', shown.diff)
  end)

  it('returns a file as it was', function()
    p.write('a.lua', 'x\n')
    p.git('rm', '-q', 'sub/b.lua')
    p.commit('second')
    local old = p.ok('git_show', { revision = 'HEAD~1', path = 'a.lua', text = true })
    t.eq({ 'one\ntwo\nthree', 3, 1, 3, nil }, { old.text, old.lines, old.start_line, old.end_line, old.next_line })
    old = p.ok('git_show', { revision = 'HEAD~1', path = 'a.lua', text = true, start_line = 2, limit = 1 })
    t.eq({ 'two', 3 }, { old.text, old.next_line })
    t.eq('b', p.ok('git_show', { revision = 'HEAD~1', path = 'sub/b.lua', text = true }).text)
    p.fails('not_found', 'not in that commit', 'git_show', { path = 'sub/b.lua', text = true })
    p.fails('not_found', 'not in that commit', 'git_show', { path = 'never.lua', text = true })
    p.fails('validation_error', 'is a directory', 'git_show', { revision = 'HEAD~1', path = 'sub', text = true })
    p.fails('validation_error', 'beyond the end', 'git_show', { path = 'a.lua', text = true, start_line = 5 })
    p.fails('validation_error', 'text: needs the path', 'git_show', { text = true })
    p.fails('access_denied', '', 'git_show', { path = '.env', text = true })
  end)
end)

it('a call of git runs no command of the project, and ends with its call', function()
  local marker = p.base .. '/ran'
  local script = p.write(p.base .. '/evil.sh', '#!/bin/sh\necho x >> ' .. marker .. '\ncat\n')
  vim.uv.fs_chmod(script, 493)
  local names = 'filter.evil.clean diff.evil.command diff.evil.textconv core.fsmonitor core.pager gpg.program'
  for name in names:gmatch('%S+') do
    p.git('config', name, script)
  end
  p.git('config', 'log.showSignature', 'true')
  p.write('.gitattributes', '* filter=evil diff=evil\n')
  p.write('a.lua', 'two\n')
  vim.fn.delete(marker)
  for _, name in ipairs({ 'git_status', 'git_diff', 'git_log', 'git_show' }) do
    p.ok(name)
  end
  vim.cmd.edit(p.root .. '/a.lua')
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'unsaved' })
  p.ok('git_blame', { bufnr = 0 })
  p.ok('git_show', { path = 'a.lua', text = true })
  t.eq(nil, vim.uv.fs_stat(marker))
  local call = p.start('git_log')
  call.cancel()
  local _, err = call.wait()
  t.eq('cancelled', err.code)
end)
