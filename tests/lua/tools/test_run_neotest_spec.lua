-- slow
local p = require('tools_project')
local seam = require('neotest_seam')
local t = require('helpers')

local NEOTEST = vim.env.NEOTEST_PATH

before_each(function()
  p.open({ 'test_run' })
  p.write('a.check', 'right: true\nwrong: exit 3\n')
  p.write('sub/b.check', 'other: true\n')
  if NEOTEST then
    seam.real(NEOTEST, p.root)
  else
    seam.double(p.root)
  end
end)
after_each(function()
  p.close()
  seam.forget()
end)

describe(NEOTEST and 'neotest' or 'a double of neotest', function()
  it('runs all, a file, the test at a line, and tests by name or id', function()
    local all = p.ok('test_run')
    t.eq({ 'neotest', 'done', false }, { all.runner, all.state, all.ok })
    t.eq({ 2, 1, 3 }, { all.passed, all.failed, all.total })
    local failure = all.failures[1]
    t.eq({ p.root .. '/a.check::wrong', 'a.check', 2 }, { failure.id, failure.path, failure.line })
    t.eq({ 'ended with 3', 'it ended' }, { failure.message, failure.detail })
    t.eq({ 1, 2 }, { all.quickfix, vim.fn.getqflist()[1].lnum })
    t.eq(1, p.ok('test_run', { path = 'sub/b.check' }).total)
    local one = p.ok('test_run', { path = 'a.check', line = 1 })
    t.eq({ 1, 1, true }, { one.total, one.passed, one.ok })
    t.eq(1, p.ok('test_run', { tests = { failure.id } }).failed)
    t.eq(2, p.ok('test_run', { tests = { 'right', 'other' } }).passed)
    p.fails('not_found', 'unknown test "wrogn"; did you mean .*/a%.check::wrong%?', 'test_run', { tests = { 'wrogn' } })
    p.write('a.check', 'right: true\nwrong: true\nnew: true\n')
    t.eq({ 3, true }, { p.ok('test_run', { path = 'a.check' }).total, p.ok('test_run', { path = 'a.check' }).ok })
  end)

  it('reruns what failed when the user ran it', function()
    p.ok('test_run')
    p.write('a.check', 'right: true\nwrong: true\n')
    local again = p.ok('test_run', { last_failed = true })
    t.eq({ 1, 1 }, { again.total, again.passed })
    again = p.ok('test_run', { last_failed = true })
    t.eq('no test failed last', require('mcp-tools.tools.test.run').render(again, { limit = 20, offset = 0 }))
  end)

  it('uses pytest for Python, and reports unknown tests', function()
    vim.env.VIRTUAL_ENV = p.checkout .. '/.deps/venv'
    p.write('test_x.py', 'def test_x():\n    pass\n')
    local done = p.ok('test_run', { path = 'test_x.py' })
    t.eq({ 'pytest', 1, true }, { done.runner, done.passed, done.ok })
    t.eq('pytest', p.ok('test_run', { tests = { 'test_x' } }).runner)
    p.fails('tool_error', 'neotest finds no test there', 'test_run', { path = 'test_x.py', runner = 'neotest' })
    p.write('x.other', '')
    p.fails('tool_error', 'neotest finds no test there', 'test_run', { path = 'x.other' })
    local preview = require('mcp-tools.tools.test.run').preview
    t.matches('^neotest, .*tests in .*x%.other$', preview({ path = 'x.other' }))
  end)

  it('ends a run after its limit, or if it is cancelled', function()
    p.write('slow.check', 'slow: sleep 100\n')
    local runs = require('mcp-tools.editor.runner.runs')
    local limit = runs.limit
    runs.limit = 500
    local late = p.ok('test_run', { path = 'slow.check' })
    t.eq({ 'timed_out', false }, { late.state, late.ok })
    runs.limit = limit
    local run = p.ok('test_run', { path = 'slow.check', timeout_ms = 300 })
    t.eq({ 'running', 'cancelled' }, { run.state, p.ok('test_run', { run = run.run, cancel = true }).state })
  end)
end)
