-- slow
-- A program that runs under the tools: waits, pauses, cancelled calls, sessions of its own.

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

describe('a launch', function()
  it('that is cancelled at once starts nothing', function()
    local path = dap.write('waiting.py', WAITING)
    local args = { type = 'python', request = 'launch', name = 'test', program = path, args = { dap.root .. '/gate' } }
    local call = dap.start('dap_run', args)
    call.handle:cancel()
    t.ok(call.ended)
    vim.wait(300, function()
      return next(dap.dap().sessions()) ~= nil
    end, 10)
    t.eq({}, vim.tbl_keys(dap.dap().sessions()))
  end)
end)

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

describe('a session that another one starts', function()
  it('is the one that is told and asked, and both are listed', function()
    local support = vim.fs.dirname(vim.uv.fs_realpath(debug.getinfo(dap.open, 'S').source:sub(2)))
    local args = { vim.fs.dirname(support) .. '/fixtures/dap_adapter.py' }
    dap.dap().adapters.many = { type = 'executable', command = dap.python, args = args }
    local answer = dap.ok('dap_run', { type = 'many', request = 'launch', name = 'parent' })
    t.eq({ 'stopped', 'breakpoint', { 'who = child' } }, { answer.status, answer.reason, answer.locals })
    t.eq('child', dap.ok('dap_variables').variables[1].value)
    t.eq('main', dap.ok('dap_threads').threads[1].name)
    local list = dap.ok('dap_sessions').sessions
    local parent, child = list[#list - 1], list[#list]
    t.eq({ 'parent', 'running' }, { parent.name, parent.status })
    t.eq({ 'child', 'stopped', parent.id, answer.session_id }, { child.name, child.status, child.parent_id, child.id })
    local later = dap.ok('dap_continue', { wait_timeout_ms = 200 })
    t.eq({ 'still_running', 'bye' }, { later.status, later.output })
    t.eq('ended', dap.ok('dap_terminate').status)
    t.eq(nil, dap.dap().session())
  end)
end)
