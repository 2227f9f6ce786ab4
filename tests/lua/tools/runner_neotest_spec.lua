-- slow
local p = require('tools_project')
local seam = require('neotest_seam')
local t = require('helpers')

local NEOTEST = vim.env.NEOTEST_PATH

before_each(function()
  p.open({ 'runner' })
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
  it('runs all, a file, the nearest test, and tests by id', function()
    t.eq('neotest', p.ok('runner_discover').runners[1].id)
    local all = p.ok('runner_run')
    t.eq({ 'neotest', 'done', false }, { all.runner, all.state, all.ok })
    t.eq({ 2, 1, 3 }, { all.passed, all.failed, all.total })
    local failure = all.failures[1]
    t.eq({ p.root .. '/a.check::wrong', 'a.check', 2 }, { failure.id, failure.path, failure.line })
    t.eq({ 'ended with 3', 'it ended' }, { failure.message, failure.detail })
    t.eq({ 1, 2 }, { all.quickfix, vim.fn.getqflist()[1].lnum })
    t.eq(1, p.ok('runner_run', { path = 'sub/b.check' }).total)
    local one = p.ok('runner_run', { path = 'a.check', line = 1 })
    t.eq({ 1, 1, true }, { one.total, one.passed, one.ok })
    t.eq(1, p.ok('runner_run', { tests = { failure.id } }).failed)
    p.write('a.check', 'right: true\nwrong: true\nnew: true\n')
    t.eq({ 3, true }, { p.ok('runner_run', { path = 'a.check' }).total, p.ok('runner_results').ok })
  end)

  it('leaves Python to pytest, and reports unknown tests', function()
    vim.env.VIRTUAL_ENV = p.checkout .. '/.deps/venv'
    p.write('test_x.py', 'def test_x():\n    pass\n')
    local done = p.ok('runner_run', { path = 'test_x.py' })
    t.eq({ 'pytest', 1, true }, { done.runner, done.passed, done.ok })
    t.eq('pytest', p.ok('runner_run', { tests = { 'test_x.py::test_x' } }).runner)
    done = p.ok('runner_run', { path = 'test_x.py', runner = 'neotest' })
    t.matches('neotest finds no test there', done.fault)
    t.eq(false, done.ok)
    p.write('x.other', '')
    t.matches('neotest finds no test there', p.ok('runner_run', { path = 'x.other' }).fault)
    local preview = require('mcp-tools.tools.runner.run').preview
    t.matches('^neotest, .*file of .*x%.other$', preview({ path = 'x.other' }))
  end)

  it('ends a run after its timeout, or if it is cancelled', function()
    p.write('slow.check', 'slow: sleep 100\n')
    local late = p.ok('runner_run', { path = 'slow.check', timeout_ms = 500 })
    t.eq({ 'timed_out', false }, { late.state, late.ok })
    local run = p.ok('runner_run', { path = 'slow.check', background = true })
    vim.wait(300)
    t.eq('cancelled', p.ok('runner_run', { cancel = run.run_id }).state)
  end)
end)
