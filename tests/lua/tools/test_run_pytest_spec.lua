-- slow
local p = require('tools_project')
local runner_project = require('runner_project')
local t = require('helpers')

local trust, write_python = runner_project.trust, runner_project.write_python

--- The text for an agent.
local function text_of(args)
  local filled = vim.tbl_extend('keep', args or {}, { limit = 20, offset = 0 })
  return require('mcp-tools.tools.test.run').render(p.ok('test_run', args), filled)
end

before_each(runner_project.open)
after_each(p.close)

describe('pytest', function()
  it('runs all tests, with structured failures and the quickfix list', function()
    write_python()
    local window = vim.api.nvim_get_current_win()
    local done = p.ok('test_run')
    t.eq({ 'pytest', 'done', false, 1 }, { done.runner, done.state, done.ok, done.exit_code })
    t.eq({ 1, 2, 0, 1, 4 }, { done.passed, done.failed, done.errors, done.skipped, done.total })
    t.eq({ 2, nil }, { #done.failures, done.output })
    local wrong, raises = done.failures[1], done.failures[2]
    t.eq({ 'tests/test_half.py::TestHalf::test_wrong', 'tests/test_half.py', 12 }, { wrong.id, wrong.path, wrong.line })
    t.matches('^AssertionError: password: %[secret%]\nassert 2 == 3', wrong.message)
    t.matches('assert half%(4%) == 3', wrong.detail)
    t.eq({ 'tests/test_half.py::test_raises', 'shop.py', 2 }, { raises.id, raises.path, raises.line })
    t.matches('^TypeError: unsupported operand', raises.message)
    local list = vim.fn.getqflist({ title = 0, items = 0 })
    t.eq({ 'mcp-tools: tests (pytest)', 2, 12 }, { list.title, #list.items, list.items[1].lnum })
    t.eq('E', list.items[1].type)
    t.eq({ 2, 1, window }, { done.quickfix, #vim.api.nvim_list_wins(), vim.api.nvim_get_current_win() })
  end)

  it('returns counts, and each failure with its position, id and an excerpt', function()
    write_python()
    local text = text_of():gsub('in %d%.%d s', 'in 0.1 s')
    t.matches('^1 passed, 2 failed, 1 skipped in 0%.1 s\ntests/test_half%.py:12: AssertionError: [^\n]*\n', text)
    t.matches('\n  tests/test_half%.py::TestHalf::test_wrong\n      assert half%(4%) == 3', text) -- no place again
    t.matches('\n  E .*assert 2 == 3\n.*\nshop%.py:2: TypeError: ', text)
    t.eq(1, select(2, text:gsub('AssertionError: ', '')))
    t.ok(not text:find('===', 1, true), text)
    t.ok(#text < 1200, text)
    t.matches('^1 passed in %d%.%d s$', text_of({ tests = { 'test_right' } }))
    t.eq('no tests found', text_of({ path = 'shop.py' }))
  end)

  it('runs a file, the test at a line or the cursor, or tests by name or id', function()
    write_python()
    p.write('tests/test_other.py', 'def test_other():\n    assert False\n')
    t.eq(4, p.ok('test_run', { path = 'tests/test_half.py' }).total)
    local one = p.ok('test_run', { path = 'tests/test_half.py', line = 12 })
    t.eq({ 1, 'tests/test_half.py::TestHalf::test_wrong' }, { one.total, one.failures[1].id })
    vim.cmd.edit(p.root .. '/tests/test_half.py')
    vim.api.nvim_win_set_cursor(0, { 6, 0 })
    local right = p.ok('test_run', { at_cursor = true })
    t.eq({ 1, 1, true, 0, nil }, { right.total, right.passed, right.ok, right.quickfix, right.output })
    local function counts(...)
      local some = p.ok('test_run', { tests = { ... } })
      return { some.passed, some.failed, some.skipped }
    end
    t.eq({ 0, 2, 0 }, counts(one.failures[1].id, 'tests/test_other.py'))
    t.eq({ { 0, 1, 1 }, { 1, 1, 0 } }, { counts('TestHalf'), (counts('test_right', 'TestHalf.test_wrong')) })
    t.eq({ 1, 3, 1 }, counts('tests'))
    vim.api.nvim_buf_set_lines(0, 0, 0, false, { '' })
    t.matches('\ntested as on disk.*: tests/test_half%.py\n', text_of({ path = 'tests/test_other.py' }))
  end)

  it('runs tests with parameters or from a base class, in a file or everywhere', function()
    p.write(
      'test_p.py',
      [[
import pytest

class Base:
    def test_inherited(self):
        pass

class TestOne(Base):
    pass

@pytest.mark.parametrize("text", ["a.b", "c/d", "e"])
def test_text(text):
    pass
]]
    )
    p.write('test_q.py', 'def test_text():\n    pass\n')
    for total, args in pairs({
      [1] = { tests = { 'test_p.py::TestOne::test_inherited' } },
      [2] = { tests = { 'test_text[a.b]', 'test_p.py::test_text[c/d]' } },
      [3] = { tests = { 'test_text' }, path = 'test_p.py' },
      [4] = { tests = { 'test_text' } },
    }) do
      t.eq(total, p.ok('test_run', args).passed)
    end
  end)

  it('suggests tests for an unknown name', function()
    write_python()
    for name, pattern in pairs({
      test_rihgt = 'unknown test "test_rihgt"; did you mean tests/test_half%.py::test_right or ',
      ['tests/test_half.py::test_rong'] = 'did you mean tests/test_half%.py::TestHalf::test_wrong',
      ['tests/test_gone.py::test_right'] = 'did you mean tests/test_half%.py::test_right',
      ['-x'] = 'unknown test "%-x"; symbol_overview',
    }) do
      p.fails('not_found', pattern, 'test_run', { tests = { 'test_right', name } })
    end
    p.write('tests/test_broken.py', 'import nothing_like_this\n')
    local text = text_of({ tests = { 'test_broken' } })
    t.matches('^1 error.*\ntests: unknown test "test_broken".*nothing_like_this', text)
  end)

  it('reruns what failed last, also in a terminal', function()
    write_python()
    local argv = { vim.env.VIRTUAL_ENV .. '/bin/python', '-m', 'pytest', '-q', 'tests' }
    t.eq(1, vim.system(argv, { cwd = p.root }):wait().code)
    t.eq(2, p.ok('test_run', { last_failed = true }).failed)
    p.write('shop.py', 'def half(n):\n    return 3\n')
    p.ok('test_run', { tests = { 'TestHalf' } })
    p.write('shop.py', 'def half(n):\n    return 1\n')
    t.eq(1, p.ok('test_run', { last_failed = true }).total)
    t.eq('no test failed last', text_of({ last_failed = true }))
  end)

  it('reports errors of collection and fixtures, and the output if no test is known', function()
    p.write('conftest.py', 'import pytest\n\n\n@pytest.fixture\ndef bad():\n    raise ValueError("no")\n')
    p.write('test_a.py', 'def test_a(bad):\n    pass\n')
    p.write('test_b.py', 'import nothing_like_this\n')
    local done = p.ok('test_run', { args = { '--continue-on-collection-errors' } })
    t.eq({ 0, 0, 2, false }, { done.passed, done.failed, done.errors, done.ok })
    t.eq({ 'test_b.py', 'error' }, { done.failures[1].id, done.failures[1].kind })
    t.matches('^ModuleNotFoundError: .*nothing_like_this', done.failures[1].message)
    t.eq({ 'test_a.py::test_a', 'conftest.py' }, { done.failures[2].id, done.failures[2].path })
    t.eq(6, done.failures[2].line)
    t.matches('^pytest failed with exit code 4 in .*no%-such%-option', text_of({ args = { '--no-such-option' } }))
    done = p.ok('test_run', { args = { '-k', 'nothing' }, path = 'test_a.py' })
    t.eq({ 5, false, 0, nil }, { done.exit_code, done.ok, done.total, done.output })
    vim.env.VIRTUAL_ENV = nil
    p.write('.venv/bin/python', '#!/bin/sh\necho "No module named pytest" >&2\nexit 1\n')
    vim.uv.fs_chmod(p.root .. '/.venv/bin/python', 493)
    done = p.ok('test_run')
    t.eq({ 'No module named pytest\n', 1 }, { done.output, done.exit_code })
  end)

  it('shortens large answers', function()
    p.write(
      'test_many.py',
      [[
import pytest

@pytest.mark.parametrize("n", range(120))
def test_many(n):
    raise ValueError("x" * 150)
]]
    )
    local text = text_of({ limit = 100 })
    t.matches('^0 passed, 120 failed in .*\nfailures 1%-100 of 120 follow; run="run%d+", offset=100 continues\n', text)
    t.matches('%(too large to show excerpts; run one file or test%)$', text)
    text = text_of({ run = text:match('run="(run%d+)"'), limit = 3, offset = 2 })
    t.matches('\nfailures 3%-5 of 120 follow.*test_many%[2%].*test_many%[4%]\n', text)
    t.ok(not text:find('test_many[5]', 1, true))
  end)

  it('continues if it takes longer than the call, and can be ended', function()
    p.write('test_slow.py', 'import time\n\n\ndef test_a():\n    pass\n\n\ndef test_b():\n    time.sleep(100)\n')
    local run = p.ok('test_run', { timeout_ms = 0 })
    t.eq({ 'running', nil }, { run.state, run.ok })
    local text
    t.wait(function()
      text = text_of({ run = run.run, timeout_ms = 300 })
      return text:find('1 passed', 1, true)
    end, 10000, 'its first result')
    t.matches('^run%d+ is still running after %d+%.%d s: 1 passed of 2%. Call again with run="run%d+"', text)
    local ended = p.ok('test_run', { run = run.run, cancel = true })
    t.eq({ 'cancelled', false }, { ended.state, ended.ok })
    t.matches('^cancelled after .*: 1 passed', text_of({ run = run.run }))
    local runs = require('mcp-tools.editor.runner.runs')
    local limit = runs.limit
    runs.limit = 3000
    local late = p.ok('test_run')
    runs.limit = limit
    t.eq({ 'timed_out', false, 1, 2 }, { late.state, late.ok, late.passed, late.total })
    local id = 'run' .. tonumber(late.run:match('%d+')) + 1
    local call = p.start('test_run')
    t.wait(function() return p.call('test_run', { run = id, timeout_ms = 0 }) ~= nil end, 5000, 'its start')
    call.cancel()
    t.fails('cancelled', nil, call.wait())
    t.eq('cancelled', p.ok('test_run', { run = id }).state)
  end)
end)

it('a test that prints does not reveal lines of a sensitive file', function()
  p.write('.env', 'KEY=hidden-value\n')
  p.write('test_env.py', 'def test_env():\n    assert open(".env").read() == "", open(".env").read()\n')
  local done = p.ok('test_run')
  t.eq(1, done.failed)
  t.ok(not vim.inspect(done):find('hidden', 1, true), vim.inspect(done))
  t.ok(not vim.inspect(vim.fn.getqflist()):find('hidden', 1, true))
  p.write('Makefile', 'test:\n\t@cat .env; echo "test_env.py:1: hidden-value"; exit 1\n')
  trust('Makefile')
  done = p.ok('test_run', { runner = 'make:test' })
  t.eq('[secret]', done.failures[1].message)
  t.ok(not vim.inspect(done):find('hidden', 1, true), vim.inspect(done))
end)
