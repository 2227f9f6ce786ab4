-- A program that runs and ends under the tools: waits, pauses, cancelled calls, exceptions, output.

local dap = require('dap_project')
local t = require('helpers')

before_each(dap.open)
after_each(dap.close)

--- A program that waits until a file is there.
local WAITING = table.concat({
  'import os, sys, time', -- 1
  'print("begun", flush=True)',
  'count = 0', -- 3
  'while not os.path.exists(sys.argv[1]):',
  '    count += 1', -- 5
  '    time.sleep(0.02)',
  'print("done")', -- 7
  '',
}, '\n')

describe('a program that runs', function()
  it('is no error when the wait runs out, is paused, and is told at once when it has stopped already', function()
    local path = dap.write('waiting.py', WAITING)
    local gate = dap.root .. '/gate'
    local answer = dap.run(path, { args = { gate }, wait_timeout_ms = 50 })
    t.eq({ 'still_running', 50 }, { answer.status, answer.waited_ms })
    local _, err = dap.call('dap_stacktrace')
    t.eq('tool_error', err.code)
    t.matches('no stopped thread.*dap_wait_until_paused.*dap_pause', err.message)
    t.eq('running', dap.ok('dap_status').status)
    t.eq('still_running', dap.ok('dap_wait_until_paused', { timeout_ms = 10, check_interval_ms = 5 }).status)
    local output = answer.output
    while not output do -- until it has come to its loop
      output = dap.ok('dap_wait_until_paused', { timeout_ms = 100 }).output
    end
    t.eq('begun', output)
    local paused = dap.ok('dap_pause', { wait_timeout_ms = 10000 })
    t.eq({ 'stopped', 'pause' }, { paused.status, paused.reason })
    t.matches('waiting%.py', vim.inspect({ paused.at, paused.callers }))
    t.eq('stopped', dap.ok('dap_wait_until_paused', { timeout_ms = 0 }).status)
    t.eq('stopped', dap.ok('dap_pause').status)
    t.eq('stopped', dap.ok('dap_status').status)
    t.eq('running', dap.ok('dap_continue', { wait_until_paused = false }).status)
    dap.write('gate', '')
    local ended = dap.ok('dap_wait_until_paused', { timeout_ms = 10000 })
    t.eq({ 'ended', 0 }, { ended.status, ended.exit_code })
    t.matches('done', ended.output)
    _, err = dap.call('dap_continue')
    t.eq('not_found', err.code)
    t.matches('has ended %(exit code 0%)', err.message)
  end)

  it('ends with a call that is cancelled while it is started', function()
    local path = dap.write('waiting.py', WAITING)
    local call = dap.start('dap_run', {
      type = 'python',
      request = 'launch',
      name = 'cancelled',
      program = path,
      args = { dap.root .. '/gate' },
    })
    t.wait(function()
      local session = dap.dap().session()
      return session and session.initialized
    end, 10000, 'the start')
    call.handle:cancel()
    t.wait(function()
      return call.ended and next(dap.dap().sessions()) == nil
    end, 10000, 'the end of the session')
    t.eq('cancelled', call.err.code)
  end)

  it('goes on when a wait for it is cancelled', function()
    local gate = dap.root .. '/gate'
    dap.run(dap.write('waiting.py', WAITING), { args = { gate }, wait_until_paused = false })
    local call = dap.start('dap_wait_until_paused')
    call.handle:cancel()
    t.eq(
      'cancelled',
      t.wait(function()
        return call.err
      end).code
    )
    dap.write('gate', '')
    t.eq(0, dap.ok('dap_wait_until_paused').exit_code)
  end)
end)

describe('the end of a program', function()
  it('is told with exit code and output, also when it was short, and what it printed is kept', function()
    local path = dap.write('short.py', 'import sys\nprint("out")\nprint("err", file=sys.stderr)\nsys.exit(3)\n')
    local answer = dap.run(path, { exception_filters = {} })
    t.eq({ 'ended', 3 }, { answer.status, answer.exit_code })
    t.matches('out', answer.output)
    local output = dap.ok('dap_program_output', { include_metadata = true })
    t.eq({ true, 3 }, { output.ended, output.exit_code })
    local by_category = {}
    for _, line in ipairs(output.lines) do
      by_category[line.category] = line.text
    end
    t.eq({ stdout = 'out', stderr = 'err' }, by_category)
    t.eq({ 'err' }, dap.ok('dap_program_output', { category = 'stderr' }).lines)
    t.eq({}, dap.ok('dap_program_output', { since = output.next }).lines)
    local sessions = dap.ok('dap_sessions').sessions
    t.eq(
      { 'ended', 'test', 3 },
      { sessions[#sessions].status, sessions[#sessions].name, sessions[#sessions].exit_code }
    )
    t.eq(false, dap.ok('dap_status').active)
  end)

  it('is told for an exception with its type and message', function()
    local path = dap.write('broken.py', 'def f(password):\n    raise ValueError("no " + "way")\n\nf("pa55word")\n')
    local answer = dap.run(path)
    t.eq({ 'exception', 'f (broken.py:2)' }, { answer.reason, answer.at })
    t.eq('no way', answer.exception.message)
    t.matches('ValueError', answer.exception.type)
    t.eq({ 'password = [secret]' }, answer.locals)
    local filters = {}
    for _, filter in ipairs(dap.ok('dap_exceptions').filters) do
      filters[filter.filter] = filter.active
    end
    t.eq({ true, false }, { filters.uncaught, filters.raised })
    local _, err = dap.call('dap_exceptions', { filters = { 'sometimes' } })
    t.matches("no 'sometimes' %(it has: .*raised", err.message)
    for _, filter in ipairs(dap.ok('dap_exceptions', { filters = { 'raised' } }).filters) do
      t.eq(filter.filter == 'raised', filter.active)
    end
    local again = dap.ok('dap_restart')
    t.eq({ 'exception', 'f (broken.py:2)' }, { again.reason, again.at })
    local ended = dap.ok('dap_terminate')
    t.eq({ true, 'ended' }, { ended.success, ended.status })
    t.eq(nil, dap.dap().session())
    t.eq('not_found', select(2, dap.call('dap_disconnect')).code)
  end)
end)
