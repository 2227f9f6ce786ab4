-- slow
local p = require('tools_project')
local runner_project = require('runner_project')
local t = require('helpers')

local trust, write_python = runner_project.trust, runner_project.write_python

local function read(name)
  return table.concat(vim.fn.readfile(p.root .. '/' .. name), '\n') .. '\n'
end

before_each(runner_project.open)
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
