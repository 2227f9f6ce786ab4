-- slow
local background = require('mcp-tools.editor.background')
local git = require('mcp-tools.editor.git')
local project = require('tools_project')
local t = require('helpers')

--- A call that nobody cancels.
local marker = project.base .. '/ran'

local function system(command, cwd, stdin)
  local done = vim.system(command, { cwd = cwd or project.root, stdin = stdin }):wait()
  assert(done.code == 0, table.concat(command, ' ') .. ': ' .. done.stderr)
  return done.stdout
end

--- git as its user runs it.
local own = project.git

--- A command that writes a mark when it runs, and copies its input.
local function evil()
  local script = project.write(project.base .. '/evil.sh', '#!/bin/sh\necho "$0 $*" >> ' .. marker .. '\ncat\n')
  vim.uv.fs_chmod(script, 493)
  return script
end

--- Adds settings to the configuration of the repository, or of another one.
local function config(settings, path)
  local function quoted(text) return '"' .. text:gsub('[\\"]', '\\%0') .. '"' end
  local file = assert(io.open(path or project.root .. '/.git/config', 'a'))
  for key, value in pairs(settings) do
    local section, inner, name = key:match('^(%w+)%.(.*)%.(%w+)$')
    if not section then
      section, name = key:match('^(%w+)%.(%w+)$')
    end
    file:write(('[%s%s]\n\t%s = %s\n'):format(section, inner and ' ' .. quoted(inner) or '', name, quoted(value)))
  end
  file:close()
end

--- The result of `git.await`.
local function ask(args, opts)
  local result
  background.run(
    function(ctx) return git.await(args, vim.tbl_extend('force', { ctx = ctx, cwd = project.root }, opts or {})) end,
    function(got) result = got end
  )
  return t.wait(function() return result end, 8000)
end

local function nothing_ran()
  local file = io.open(marker)
  t.eq(nil, file and file:read('*a'))
end

--- All commands, with options that make them read working tree, index and commits.
local ALL = [[
  status | status --short | diff HEAD | diff --numstat HEAD | diff HEAD~ HEAD | log -p | show HEAD | blame a.txt
  | grep -e one | grep --untracked -e one | ls-files -m -o | for-each-ref | rev-parse HEAD
]]

local function ask_all()
  for command in ALL:gmatch('[^|]+') do
    local result = ask(vim.split(vim.trim(command), ' '))
    t.ok(result.ok, command .. ': ' .. tostring(result.fault))
  end
end

--- Changes the text, or only the time, of a file, so that git has to read it.
local function touch()
  project.write('a.txt', 'one\nthree\n')
  vim.uv.fs_utime(project.root .. '/b.txt', 1, 1)
end

project.each({}, function()
  project.init()
  project.write('a.txt', 'one\n')
  project.write('b.txt', 'same\n')
  project.commit('first')
  project.write('a.txt', 'one\ntwo\n')
  project.commit('second')
end)

describe('git', function()
  it('returns output and faults', function()
    touch()
    t.eq(' M a.txt\n', ask({ 'status', '--short' }).stdout)
    t.matches('diff %-%-git a/a%.txt b/a%.txt\n.*\n%-two\n%+three\n', ask({ 'diff', 'HEAD' }).stdout)
    t.matches('^fatal: ', ask({ 'rev-parse', '--verify', 'nothing' }).fault)
    t.matches('Unmatched', ask({ 'log', '--grep=a\\(b' }).fault)
    t.matches("no such path 'none' in HEAD", ask({ 'blame', 'none' }).fault)
    t.raises('git commit', function() git.await({ 'commit' }, {}) end)
  end)

  it('leaves no lock and changes no file; an empty directory is not a repository', function()
    touch()
    local before = vim.uv.fs_stat(project.root .. '/.git/index').ino
    ask_all()
    t.eq(before, vim.uv.fs_stat(project.root .. '/.git/index').ino)
    vim.fn.delete(project.root .. '/.git', 'rf')
    t.eq('not a git repository', ask({ 'status' }).fault)
    vim.fn.mkdir(project.root .. '/.git')
    t.eq('not a git repository', ask({ 'status' }).fault)
  end)

  it('works in a subdirectory, a linked working tree and a submodule', function()
    project.write('sub/c.txt', 'c')
    t.eq('?? sub/\n', ask({ 'status', '--short' }, { cwd = project.root .. '/sub' }).stdout:gsub('%./', 'sub/'))
    own('worktree', 'add', '-q', '../other')
    project.write(project.base .. '/other/a.txt', 'x\n')
    t.eq(' M a.txt\n', ask({ 'status', '--short' }, { cwd = project.base .. '/other' }).stdout)
    own('submodule', '--quiet', 'add', project.base .. '/other', 'module')
    project.write('module/a.txt', 'y\n')
    t.eq(' M a.txt\n', ask({ 'status', '--short' }, { cwd = project.root .. '/module' }).stdout)
    own('commit', '-q', '-m', 'module')
    own('worktree', 'add', '-q', '../third')
    own('-C', '../third', 'submodule', '--quiet', 'update', '--init')
    project.write(project.base .. '/third/module/a.txt', 'z\n')
    t.eq(' M a.txt\n', ask({ 'status', '--short' }, { cwd = project.base .. '/third/module' }).stdout)
  end)

  --- Returns a new directory beside the project, or in it.
  local function stranger(above)
    local folder = (above or project.base) .. '/stranger'
    vim.fn.delete(folder, 'rf')
    vim.fn.mkdir(folder, 'p')
    return folder
  end

  local function log(cwd) return ask({ 'log', '-n1', '--format=%s' }, { cwd = cwd }) end

  --- Checks that the history of the project is not readable from a directory.
  local function refuses(folder, why)
    local answer = log(folder)
    t.eq({ false, '' }, { answer.ok, answer.stdout })
    t.matches(why, answer.fault)
  end

  it('shows no other repository, whatever refers to it', function()
    own('worktree', 'add', '-q', '../linked') -- its directory names another `.git`
    for _, pointer in ipairs({ project.root .. '/.git', '../project/.git', '../project/.git/worktrees/linked' }) do
      local folder = stranger()
      project.write(folder .. '/.git', ('gitdir: %s\n'):format(pointer))
      refuses(folder, 'does not point back')
    end
    local folder = stranger()
    vim.uv.fs_symlink(project.root .. '/.git', folder .. '/.git')
    refuses(folder, 'does not point back')
    for _, common in ipairs({ project.root .. '/.git', '../../project/.git' }) do
      folder = stranger()
      project.write(folder .. '/.git/HEAD', 'ref: refs/heads/main\n')
      project.write(folder .. '/.git/commondir', common .. '\n')
      refuses(folder, 'does not point back')
      vim.fn.mkdir(folder .. '/.git/objects')
      vim.fn.mkdir(folder .. '/.git/refs')
      refuses(folder, 'does not point back')
    end
    local theirs = project.root .. '/.git/objects'
    for _, borrow in ipairs({
      function(objects) project.write(objects .. '/info/alternates', theirs .. '\n') end,
      function(objects)
        vim.fn.delete(objects, 'rf')
        vim.uv.fs_symlink(theirs, objects)
      end,
      function(objects)
        for name in vim.fs.dir(theirs) do
          vim.fn.delete(objects .. '/' .. name, 'rf')
          vim.uv.fs_symlink(theirs .. '/' .. name, objects .. '/' .. name)
        end
      end,
    }) do
      folder = stranger()
      system({ 'git', 'init', '-q', '-b', 'main', folder })
      borrow(folder .. '/.git/objects')
      -- This way it needs to know no hash.
      vim.uv.fs_symlink(project.root .. '/.git/refs/heads/main', folder .. '/.git/refs/heads/main')
      t.matches('second', system({ 'git', 'log', '-n1' }, folder))
      refuses(folder, 'borrows objects from')
    end
  end)

  it('reads the repository that was checked, even if git would find another one', function()
    -- git skips this `.git` and finds the repository above.
    local folder = stranger(project.root)
    project.write(folder .. '/.git/HEAD', 'nothing\n')
    vim.fn.mkdir(folder .. '/.git/objects')
    vim.fn.mkdir(folder .. '/.git/refs')
    t.matches('second', system({ 'git', 'log', '-n1' }, folder))
    refuses(folder, 'not a git repository')
    folder = stranger()
    system({ 'git', 'init', '-q', '--bare', folder .. '/gd' })
    vim.uv.fs_symlink(project.root .. '/.git', folder .. '/gd\nx')
    project.write(folder .. '/.git', 'gitdir: gd\nx')
    t.matches('second', system({ 'git', 'log', '-n1' }, folder))
    refuses(folder, 'does not point back')
    folder = stranger()
    local gitdir = folder .. '/common/worktrees/w'
    system({ 'git', 'init', '-q', '--bare', folder .. '/common' })
    project.write(gitdir .. '/HEAD', 'ref: refs/heads/main\n')
    vim.uv.fs_symlink(project.root .. '/.git', folder .. '/common\nx')
    project.write(gitdir .. '/commondir', folder .. '/common\nx')
    project.write(folder .. '/.git', 'gitdir: ' .. gitdir .. '\n')
    t.matches('second', system({ 'git', 'log', '-n1' }, folder))
    refuses(folder, 'does not point back')
  end)

  it('reads a repository that borrows objects if an option allows it', function()
    local clone, reference = project.base .. '/shared', project.base .. '/chain'
    own('clone', '-q', '--shared', project.root, clone)
    system({ 'git', 'clone', '-q', '--shared', clone, reference })
    local options = require('mcp-tools.config')
    t.matches('git%.alternates', log(clone).fault)
    options.setup({ git = { alternates = { project.root } } })
    t.eq('second\n', log(clone).stdout)
    t.matches(vim.pesc(clone), log(reference).fault)
    options.setup({ git = { alternates = { clone } } })
    t.matches(vim.pesc(project.root), log(reference).fault)
    options.setup({ git = { alternates = { clone, project.root } } })
    t.eq('second\n', log(reference).stdout)
    -- git unquotes a path, which looks like one below the directory of the file.
    options.setup({ git = { alternates = { clone } } })
    project.write(clone .. '/.git/objects/info/alternates', ('"%s/.git/objects"\n'):format(project.root))
    t.matches('quoted path', log(clone).fault)
    vim.fn.delete(clone .. '/.git/objects', 'rf')
    vim.uv.fs_symlink(project.root .. '/.git/objects', clone .. '/.git/objects')
    options.setup({ git = { alternates = { project.root } } })
    t.eq('second\n', log(clone).stdout)
    options.setup({ git = { alternates = {} } })
    t.matches('git%.alternates', log(clone).fault)
  end)

  it('starts no more threads than there are cores, whatever the configuration', function()
    own('config', 'grep.threads', '10000000')
    t.ok(ask({ 'grep', '--untracked', '-F', '-e', 'no such text', '--', '.' }).quiet)
  end)

  it('refuses a repository of another owner, as git does', function()
    if vim.uv.getuid() ~= 0 then
      return -- only root can change the owner
    end
    system({ 'chown', '-R', '12345', project.root })
    t.matches('dubious ownership', ask({ 'status' }).fault)
    system({ 'chown', '-R', '0', project.root })
    t.ok(ask({ 'status' }).ok)
  end)

  it('refuses an object directory with more entries than git creates', function()
    local objects = project.root .. '/.git/objects/'
    for i = 1, 3000 do
      vim.uv.fs_mkdir(objects .. 'x' .. i, 493)
    end
    t.matches('more entries', ask({ 'status' }).fault)
  end)

  it('does not quote files in its errors', function()
    local secret = project.write(project.base .. '/elsewhere', 'hunter2first\nhunter2second\n')
    local dot_git = project.root .. '/.git/'
    local function faults()
      local messages = {}
      local commands = 'status|log -n1|blame a.txt|grep -e nowhere|rev-parse --verify nowhere'
      for command in commands:gmatch('[^|]+') do
        table.insert(messages, ask(vim.split(command, ' ')).fault)
      end
      t.ok(#messages > 0)
      t.eq(nil, table.concat(messages, '\n'):find('hunter2', 1, true))
    end
    for _, name in ipairs({ 'packed-refs', 'shallow', 'info/grafts', 'MERGE_HEAD' }) do
      vim.uv.fs_symlink(secret, dot_git .. name)
      faults()
      vim.fn.delete(dot_git .. name)
    end
    for _, key in ipairs({ 'include.path', 'blame.ignoreRevsFile' }) do
      config({ [key] = secret })
      faults()
    end
  end)

  it('is never run from the project', function()
    local path, script = vim.env.PATH, evil()
    vim.fn.mkdir(project.root .. '/bin')
    vim.uv.fs_symlink(script, project.root .. '/git')
    vim.uv.fs_symlink(script, project.root .. '/bin/git')
    vim.uv.fs_symlink(project.root .. '/bin', project.base .. '/linked-bin')
    for _, folder in ipairs({ 'bin', '.', '', '.:', project.root .. '/bin', project.base .. '/linked-bin' }) do
      vim.env.PATH = folder .. ':' .. path
      t.eq(true, ask({ 'status' }).ok)
    end
    vim.env.PATH = '.'
    ask({ 'status' })
    vim.env.PATH = path
    nothing_ran()
  end)

  it('is not affected by the environment of the editor', function()
    evil()
    vim.env.GIT_DIR, vim.env.GIT_EXTERNAL_DIFF, vim.env.GIT_CONFIG_COUNT = '/nowhere', project.base .. '/evil.sh', '1'
    vim.env.GIT_CONFIG_KEY_0, vim.env.GIT_CONFIG_VALUE_0 = 'core.fsmonitor', project.base .. '/evil.sh'
    touch()
    ask_all()
    for name in pairs(vim.fn.environ()) do
      vim.env[name] = not vim.startswith(name, 'GIT_') and vim.env[name] or nil
    end
    nothing_ran()
  end)
end)

describe('no command of the repository runs:', function()
  it('monitors, hooks, pagers, external diffs, text conversion, signatures, aliases', function()
    local script = evil()
    local names = [[
      core.fsmonitor core.pager core.editor core.askPass core.alternateRefsCommand credential.helper
      diff.external diff.evil.command diff.evil.textconv interactive.diffFilter pager.diff
      pager.status pager.config gpg.program gpg.openpgp.program gpg.ssh.program
      gpg.ssh.allowedSignersFile gpg.x509.program hook.evil.command
    ]]
    for name in names:gmatch('%S+') do
      config({ [name] = script })
    end
    config({
      ['log.showSignature'] = 'true',
      ['format.pretty'] = '%G? %H',
      ['alias.status'] = '!' .. script,
      ['alias.diff'] = '!' .. script,
      ['hook.evil.event'] = 'post-index-change',
      ['color.diff'] = 'always',
      ['color.grep'] = 'always',
      ['color.status'] = 'always',
      ['diff.noprefix'] = 'true',
    })
    for _, hook in ipairs({ 'post-index-change', 'fsmonitor-watchman', 'reference-transaction', 'post-checkout' }) do
      vim.uv.fs_symlink(script, project.root .. '/.git/hooks/' .. hook)
    end
    project.write('.git/info/attributes', '* diff=evil\n')
    -- Commits with signatures, so that there is something to check.
    local unsigned = own('cat-file', 'commit', 'HEAD')
    for _, kind in ipairs({ 'PGP SIGNATURE', 'SSH SIGNATURE', 'SIGNED MESSAGE' }) do
      local signature = ('\ngpgsig -----BEGIN %s-----\n x\n -----END %s-----\n\n'):format(kind, kind)
      local text = unsigned:gsub('\n\n', signature, 1)
      local commit = text:gsub('\nparent %x+', '\nparent ' .. own('rev-parse', 'HEAD'), 1)
      local signed = system({ 'git', 'hash-object', '-t', 'commit', '-w', '--stdin' }, nil, commit)
      project.write('.git/refs/heads/main', signed)
    end
    touch()
    vim.fn.delete(marker)
    ask_all()
    ask({ 'log', '-n1', '--format=%G?' })
    ask({ 'log', '-n1', '--format=%G?', 'HEAD~' })
    ask({ 'log', '-n1', '--format=%G?', 'HEAD~2' })
    nothing_ran()
    t.eq(' M a.txt\n', ask({ 'status', '--short' }).stdout)
    t.matches('^diff %-%-git a/a%.txt b/a%.txt\n', ask({ 'diff', 'HEAD' }).stdout)
    t.matches('^commit %x+\nAuthor: ', ask({ 'log' }).stdout)
    t.matches('^a%.txt:one\n', ask({ 'grep', '-e', 'one' }).stdout)
    own('--no-pager', 'log', '-p') -- which runs them
    t.ok(vim.uv.fs_stat(marker))
  end)

  it('filters, with any name', function()
    local script = evil()
    for _, name in ipairs({ 'evil', 'a.b c', 'Ünï"\\' }) do
      config({ ['filter.' .. name .. '.clean'] = script, ['filter.' .. name .. '.smudge'] = script })
      config({ ['filter.' .. name .. '.required'] = 'true' })
    end
    config({ ['filter.long.process'] = script, ['filter.long.required'] = 'true' })
    config({ ['filter.included.clean'] = script }, project.root .. '/more')
    config({ ['include.path'] = '../more' })
    config({ ['filter..clean'] = script, ['filter..required'] = 'true' })
    for _, name in ipairs({ 'evil', 'long', 'included', '' }) do
      project.write('.gitattributes', '*.txt filter=' .. name .. '\n')
      touch()
      ask_all()
      nothing_ran()
      t.eq(' M a.txt\n', ask({ 'status', '--short', '-uno' }).stdout)
    end
    project.write('.gitattributes', '*.txt filter=evil\n')
    own('diff', 'HEAD')
    t.ok(vim.uv.fs_stat(marker))
  end)

  it('filters that are added while the list of filters is cached', function()
    local script, time = evil(), os.time
    local function starts()
      return t.calls(vim.uv, 'spawn', function() ask({ 'diff', 'HEAD' }) end)
    end
    local ok, thrown = pcall(function()
      os.time = function()
        return time() + 10 -- files that have just changed are not cached
      end
      t.eq({ 2, 1 }, { starts(), starts() })
      config({ ['filter.evil.clean'] = script, ['filter.evil.required'] = 'true' })
      project.write('.gitattributes', '*.txt filter=evil\n')
      touch()
      t.eq({ 2, 1 }, { starts(), starts() })
      config({ ['include.path'] = '../more' })
      starts()
      config({ ['filter.included.clean'] = script }, project.root .. '/more')
      project.write('.gitattributes', '*.txt filter=included\n')
      touch()
      t.eq({ 2, 2 }, { starts(), starts() })
    end)
    os.time = time
    t.ok(ok, thrown)
    nothing_ran()
  end)

  it('a filter that cannot be disabled is refused', function()
    local script = evil()
    config({ ['filter.a=b.clean'] = script })
    project.write('.gitattributes', '*.txt filter=a=b\n')
    touch()
    t.matches('filter that cannot be turned off: a=b', ask({ 'diff', 'HEAD' }).fault)
    nothing_ran()
    project.write('.git/config', ('[filter "%s"]\n\tclean = x\n'):format(('x'):rep(1000)):rep(2000))
    t.matches('too large', ask({ 'diff', 'HEAD' }).fault)
  end)

  it('nothing is fetched', function()
    local script = evil()
    local file = 'file://' .. project.base .. '/other'
    system({ 'git', 'clone', '-q', '--bare', project.root, project.base .. '/other' }, '/')
    for url, more in pairs({
      [file] = { ['remote.evil.uploadpack'] = script },
      [project.base .. '/other'] = { ['remote.evil.uploadpack'] = script },
      ['ssh://example.org/x'] = { ['core.sshCommand'] = script },
      ['git://example.org/x'] = { ['core.gitProxy'] = script },
      ['ext::' .. script] = { ['protocol.ext.allow'] = 'always' },
      ['https://localhost:9/x'] = { ['credential.helper'] = script, ['core.askPass'] = script },
      ['evil'] = { ['remote.evil.vcs'] = 'evil' },
    }) do
      project.init()
      project.commit('first')
      local blob = own('rev-parse', 'HEAD:a.txt')
      vim.fn.delete(('%s/.git/objects/%s/%s'):format(project.root, blob:sub(1, 2), blob:sub(3)))
      config({
        ['core.repositoryFormatVersion'] = '1',
        ['extensions.partialClone'] = 'evil',
        ['remote.evil.url'] = url,
        ['remote.evil.promisor'] = 'true',
      })
      config(more)
      project.write('a.txt', 'changed\n')
      for _, args in ipairs({ { 'diff', 'HEAD' }, { 'log', '-p' }, { 'blame', 'a.txt' } }) do
        local start = vim.uv.hrtime()
        t.eq(false, ask(args).ok)
        t.ok((vim.uv.hrtime() - start) / 1e6 < 10000, url)
      end
      t.eq(true, ask({ 'status', '--short' }).ok)
      nothing_ran()
      project.write('a.txt', 'one\n')
    end
  end)

  it('commands of submodules', function()
    local script = evil()
    local origin = project.base .. '/origin'
    system({ 'git', 'clone', '-q', project.root, origin }, '/')
    own('submodule', '--quiet', 'add', origin, 'module')
    own('commit', '-q', '-m', 'third')
    own('-C', 'module', 'checkout', '-q', 'HEAD~')
    local inner = { ['diff.external'] = script, ['filter.inner.clean'] = script, ['core.fsmonitor'] = script }
    config(inner, project.root .. '/.git/modules/module/config')
    project.write('module/.gitattributes', '* filter=inner\n')
    project.write('module/b.txt', 'changed\n')
    vim.fn.delete(marker)
    config({
      ['diff.submodule'] = 'diff',
      ['diff.ignoreSubmodules'] = 'none',
      ['submodule.module.ignore'] = 'none',
      ['submodule.recurse'] = 'true',
      ['status.submoduleSummary'] = 'true',
      ['fetch.recurseSubmodules'] = 'true',
    })
    ask_all()
    nothing_ran()
    t.matches('%+Subproject commit', ask({ 'diff', 'HEAD' }).stdout)
    own('diff', 'HEAD')
    t.ok(vim.uv.fs_stat(marker))
  end)

  it('commands of a bare repository in the project', function()
    local script = evil()
    local bare = project.root .. '/docs'
    system({ 'git', 'clone', '-q', '--bare', project.root, bare }, '/')
    local settings = { ['core.fsmonitor'] = script, ['core.bare'] = 'false', ['core.worktree'] = project.root }
    config(settings, bare .. '/config')
    vim.fn.delete(marker)
    for _, folder in ipairs({ '', '/.git', '/inner' }) do
      vim.fn.mkdir(bare .. folder, 'p')
      local cwd = folder == '/inner' and bare .. folder or bare
      t.matches('docs is a bare repository$', ask({ 'status' }, { cwd = cwd }).fault)
    end
    nothing_ran()
  end)
end)

it('the working tree is the directory with `.git`, whatever the configuration', function()
  local secret = project.write(project.base .. '/elsewhere/a.txt', 'secret\n')
  config({ ['core.worktree'] = vim.fs.dirname(secret) })
  t.matches('secret', own('diff', 'HEAD'))
  local result = ask({ 'diff', 'HEAD' })
  t.eq({ true, '' }, { result.ok, result.stdout })
  config({ ['core.bare'] = 'true' })
  own('config', '--unset', 'core.worktree')
  t.eq({ true, '' }, { ask({ 'diff', 'HEAD' }).ok, ask({ 'diff', 'HEAD' }).stdout })
end)
