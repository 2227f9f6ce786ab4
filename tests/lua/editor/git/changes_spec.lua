-- slow
local project = require('editor_project')
local t = require('helpers')

local function git(...)
  local done = vim
    .system({ 'git', '-c', 'user.name=a', '-c', 'user.email=a@example.org', ... }, { cwd = project.root })
    :wait()
  assert(done.code == 0, done.stderr)
  return vim.trim(done.stdout)
end

local function commit()
  git('add', '-A')
  git('commit', '-q', '-m', 'some')
end

--- The prompt's text, or why there is none.
local function review(args)
  local outcome = project.run('prompt', 'review_changes', args)
  if outcome.error then
    return outcome.error.message
  end
  local text = vim.json.decode(outcome.payload.text).messages[1].content.text
  t.ok(not text:find('hidden', 1, true), text)
  return text
end

before_each(function()
  project.open()
  vim.fn.delete(project.root .. '/.git', 'rf')
  git('init', '-q', '-b', 'main')
  project.write('a.lua', 'one\n')
  project.write('.env', 'KEY=hidden\n')
  commit()
end)
after_each(project.close)

describe('a base', function()
  it('is a commit, never a file or folder', function()
    local blob, tree = git('rev-parse', 'HEAD:.env'), git('rev-parse', 'HEAD^{tree}')
    git('tag', 'of-blob', blob)
    git('update-ref', 'refs/evil', blob)
    project.write('a.lua', 'two\n')
    for _, base in ipairs({ blob, tree, 'of-blob', 'refs/evil', 'HEAD^{tree}', blob:sub(1, 12), 'nothing' }) do
      t.matches('is not a commit of this repository$', review({ base = base }))
      t.matches('is not a commit of this repository$', review({ base = base, path = 'a.lua' }))
    end
    git('tag', '-a', '-m', 'x', 'of-commit')
    for _, base in ipairs({ 'HEAD', 'main', '@', 'HEAD~0', 'of-commit', git('rev-parse', 'HEAD') }) do
      t.matches('%-one\n%+two', review({ base = base }))
    end
  end)
end)

describe('a file of the changes', function()
  it('is judged by itself, when a file became a folder or the other way round', function()
    project.write('config', 'file\n')
    project.write('folder/.env', 'KEY=hidden\n')
    project.write('folder/b.lua', 'b\n')
    commit()
    vim.fn.delete(project.root .. '/config')
    vim.fn.delete(project.root .. '/folder', 'rf')
    project.write('config/.env', 'KEY=hidden\n')
    project.write('config/c.lua', 'c\n')
    project.write('folder', 'file\n')
    git('add', '-A')
    for _, args in ipairs({ {}, { path = 'config' }, { path = 'folder' } }) do
      local text = review(args)
      t.matches('contain secrets: [^\n]*/%.env', text)
      t.eq(args.path ~= 'folder', text:find('\n%-file\n') ~= nil)
      t.eq(args.path ~= 'folder', text:find('\n%+c\n') ~= nil)
      t.eq(args.path ~= 'config', text:find('\n%-b\n') ~= nil)
    end
  end)

  it('is judged by both its names when it was renamed', function()
    git('config', 'diff.renames', 'copies')
    git('mv', '.env', 'b.lua')
    git('mv', 'a.lua', 'id_rsa')
    local outcome = project.prompt('review_changes')
    t.matches('contain secrets: %.env, id_rsa', outcome)
    for _, name in ipairs({ '.env', 'id_rsa' }) do
      t.ok(not outcome:find('[ab]/' .. vim.pesc(name)), outcome)
    end
    t.matches('\n%-one\n', outcome)
  end)

  it('is shown whatever its name is', function()
    local names = { 'ü.lua', 'a b.lua', 'a"b\\.lua', 'line\nbreak\t\1\127.lua', '-dash', ':(glob)*', 'x => y', '*' }
    for _, name in ipairs(names) do
      project.write(name, 'old\n')
    end
    commit()
    for i, name in ipairs(names) do
      project.write(name, ('new %d;\n'):format(i))
    end
    local text = review()
    for i in ipairs(names) do
      t.matches(('\n%%+new %d;\n'):format(i), text)
    end
    t.ok(not text:find('contain secrets', 1, true))
    project.write('un\ntracked', '')
    t.matches('\nNot tracked by git[^\n]*: un%?tracked\n', review())
  end)

  it('has changed only when its text has', function()
    vim.uv.fs_utime(project.root .. '/.env', 1, 1)
    vim.uv.fs_utime(project.root .. '/a.lua', 1, 1)
    local text = review()
    t.matches('^Nothing that git tracks has changed since HEAD%.\n\nTell me that%.$', text)
    vim.uv.fs_chmod(project.root .. '/a.lua', 493)
    t.matches('\nnew mode 100755', review())
  end)

  it('is not one that lies outside', function()
    project.write(project.base .. '/secret.txt', 'hidden\n')
    project.write('xx/secret.txt', 'hidden\n')
    git('add', '-A')
    vim.fn.delete(project.root .. '/xx', 'rf')
    local path = project.root .. '/.git/index'
    local file = assert(io.open(path, 'rb'))
    local index = file:read('*a'):gsub('xx/secret%.txt', '../secret.txt')
    file:close()
    project.write(path, index)
    project.write('a.lua', 'two\n')
    local text = review()
    t.matches('contain secrets: %.%./secret%.txt', text)
    t.matches('%+two', text)
  end)

  it('is one of the folder that the project is', function()
    project.write('sub/b.lua', 'b\n')
    commit()
    project.write('a.lua', 'two\n')
    project.write('sub/b.lua', 'c\n')
    project.write('sub/new', '')
    vim.fn.mkdir(project.root .. '/sub/.jj')
    vim.cmd.cd(project.root .. '/sub')
    local text = review()
    t.matches('\n%+c\n', text)
    t.ok(not text:find('a.lua', 1, true))
    local status = project.prompt('project_status')
    t.matches('## main\n M b%.lua\n%?%? new', status)
    t.ok(not status:find('a.lua', 1, true))
  end)
end)

describe('large changes', function()
  it('are cut at a line that says so', function()
    for i = 1, 30 do
      project.write(i .. '.txt', 'old\n')
    end
    commit()
    for i = 1, 30 do
      project.write(i .. '.txt', ('new %d\n'):format(i):rep(3000))
    end
    local text = review()
    t.matches('The diff is cut', text)
    t.ok(#text < 270 * 1024)
  end)

  it('of very many files have a bound', function()
    for i = 1, 2100 do
      project.write(('many/%d.txt'):format(i), 'x')
    end
    git('add', '-A')
    local text = review()
    t.matches('The diff is cut', text)
    t.matches('many/1%.txt', text)
  end)
end)

describe('a repository that nobody trusts', function()
  it('runs nothing for the prompts, fetches nothing, and is no bare one', function()
    local marker = project.base .. '/ran'
    local script = project.write(project.base .. '/evil.sh', '#!/bin/sh\necho x >> ' .. marker .. '\ncat\n')
    vim.uv.fs_chmod(script, 493)
    local bare = project.root .. '/docs'
    git('clone', '-q', '--bare', '.', bare)
    for key, value in pairs({
      ['filter.evil.clean'] = script,
      ['core.fsmonitor'] = script,
      ['extensions.partialClone'] = 'evil',
      ['remote.evil.url'] = 'ext::' .. script,
      ['protocol.ext.allow'] = 'always',
    }) do
      git('config', key, value)
      git('--git-dir', bare, 'config', key, value)
    end
    git('config', 'core.repositoryFormatVersion', '1')
    local blob = git('rev-parse', 'HEAD:a.lua')
    project.write('.gitattributes', '* filter=evil\n')
    project.write('a.lua', 'two\n')
    vim.fn.delete(('%s/.git/objects/%s/%s'):format(project.root, blob:sub(1, 2), blob:sub(3)))
    vim.fn.delete(marker)
    local start = vim.uv.hrtime()
    t.matches(' M a%.lua', project.prompt('project_status'))
    t.matches('cannot read the changes', review())
    vim.fn.mkdir(bare .. '/.jj')
    vim.cmd.cd(bare)
    t.matches('is a bare repository', project.prompt('project_status'))
    t.matches('sensitive', review()) -- what git keeps is nobody's to read
    t.ok((vim.uv.hrtime() - start) / 1e6 < 4000)
    t.eq(nil, vim.uv.fs_stat(marker))
  end)
end)
