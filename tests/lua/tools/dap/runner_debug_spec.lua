-- slow
-- Tests under the debugger.

local dap = require('dap_project')
local t = require('helpers')

local TEST = table.concat({
  'def test_right():', -- 1
  '    value = 4',
  '    assert value == 4', -- 3
  '',
  '',
  'def test_wrong():', -- 6
  '    value = 5',
  '    print("seen")', -- 8
  '    assert value == 4',
  '',
}, '\n')

local path

before_each(function()
  dap.open({ 'dap', 'runner' })
  vim.env.VIRTUAL_ENV = vim.fs.dirname(vim.fs.dirname(dap.python))
  path = dap.write('test_value.py', TEST)
end)
after_each(dap.close)

describe('runner_debug', function()
  it('stops at a breakpoint in the test, which then continues to its end', function()
    dap.ok('dap_set_breakpoint', { filename = path, line = 3 })
    local stop = dap.ok('runner_debug', { path = path, line = 2 })
    t.eq({ 'stopped', 'breakpoint' }, { stop.status, stop.reason })
    t.matches('test_value%.py:3', vim.inspect(stop))
    t.eq('4', dap.ok('dap_evaluate', { expression = 'value' }).result)
    local ended = dap.ok('dap_continue', { wait_timeout_ms = 20000 })
    t.eq({ 'ended', 0 }, { ended.status, ended.exit_code })
    t.matches('1 passed', ended.output)
  end)

  it('stops where the test fails', function()
    local stop = dap.ok('runner_debug', { test = 'test_value.py::test_wrong' })
    t.eq({ 'stopped', 'exception' }, { stop.status, stop.reason })
    t.matches('test_value%.py:9', vim.inspect(stop))
    t.matches('seen', stop.output)
    local ended = dap.ok('runner_debug', { test = 'test_value.py::test_wrong', stop_at_failure = false })
    t.eq({ 'ended', 1 }, { ended.status, ended.exit_code })
  end)

  it('shows its command in the preview, and refuses invalid arguments', function()
    local preview = require('mcp-tools.tools.runner.debug').preview
    local shown = preview({ test = 'x.py::test_x', type = 'python' })
    t.matches('^under the debugger in .*\n%$ .*%-m pytest .*%-%-capture=no x%.py::test_x$', shown)
    dap.fails('validation_error', 'exactly one of test, path and bufnr', 'runner_debug', {})
    dap.fails('validation_error', 'exactly one', 'runner_debug', { test = 'a', path = path })
    dap.fails('not_found', 'there is no file', 'runner_debug', { path = dap.root .. '/none.py', line = 1 })
    dap.fails('not_found', "no adapter 'none'", 'runner_debug', { path = path, line = 1, type = 'none' })
  end)

  it('ends if its call is cancelled', function()
    local slow = dap.write('test_slow.py', 'import time\n\n\ndef test_slow():\n    time.sleep(100)\n')
    local call = dap.start('runner_debug', { path = slow, line = 5 })
    t.wait(function()
      local session = dap.dap().session()
      return session and session.initialized
    end, 10000, 'the start')
    call.cancel()
    t.eq('cancelled', select(2, call.wait()).code)
  end)
end)
