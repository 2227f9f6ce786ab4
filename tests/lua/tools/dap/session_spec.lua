-- slow
-- Whole debug sessions: stepping, waits, pauses, cancelled calls, the end of a program, and what the user notices.

local dap = require('dap_project')
local t = require('helpers')
local tool_calls = require('tool_calls')

before_each(dap.open)
after_each(dap.close)

describe('a debug session', function()
  it('takes eight calls from the launch to the output, and half a kilobyte a stop', function()
    local path = dap.write('loop.py', dap.LOOP)
    local calls, sizes = 0, {}
    local function call(name, args)
      calls = calls + 1
      local answer = dap.ok(name, args)
      sizes[#sizes + 1] = #vim.json.encode(answer)
      return answer
    end
    local set = call('dap_set_breakpoint', { filename = path, line = 6 })
    t.eq({ 'loop.py', 6, nil }, { set.file, set.line, set.verified })
    local first = call('dap_run', { type = 'python', request = 'launch', name = 'loop', program = 'loop.py' })
    t.eq({ 'stopped', 'breakpoint', 'total (loop.py:6)' }, { first.status, first.reason, first.at })
    t.eq({ 'main (loop.py:12)', '<module> (loop.py:16)' }, first.callers)
    t.eq({ 'n = 1', 'numbers = [1, 2, 3]', 'sum_ = 0' }, first.locals)
    t.matches('\n>6         sum_ %+= n\n', first.code)
    local step = call('dap_step_over')
    t.eq({ 'step', 'total (loop.py:7)' }, { step.reason, step.at })
    t.eq({ 'sum_ = 1' }, step.changed)
    t.eq(nil, step.locals)
    local second = call('dap_continue')
    t.eq({ 'breakpoint', 'add 1' }, { second.reason, second.output })
    t.eq({ 'n = 2' }, second.changed)
    t.eq('[1, 2, 3, 4]', call('dap_evaluate', { expression = 'numbers + [4]' }).result)
    call('dap_clear_breakpoints')
    local last = call('dap_continue')
    t.eq({ 'ended', 0, 'add 2\nadd 3\ntotal 6' }, { last.status, last.exit_code, last.output })
    t.eq({ 'add 1', 'add 2', 'add 3', 'total 6' }, call('dap_program_output', { category = 'stdout' }).lines)
    t.ok(calls <= 8)
    for _, size in ipairs(sizes) do
      t.ok(size <= 600, ('an answer has %d bytes'):format(size))
    end
  end)
end)

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
  it('that is cancelled immediately starts nothing', function()
    local path = dap.write('waiting.py', WAITING)
    local args = { type = 'python', request = 'launch', name = 'test', program = path, args = { dap.root .. '/gate' } }
    local call = dap.start('dap_run', args)
    call.cancel()
    t.eq('cancelled', select(2, call.wait(0)).code)
    vim.wait(300, function()
      return next(dap.dap().sessions()) ~= nil
    end, 10)
    t.eq({}, vim.tbl_keys(dap.dap().sessions()))
  end)
end)

describe('a running program', function()
  it('is no error after a timeout, can be paused, and a stopped one is reported at once', function()
    local path = dap.write('waiting.py', WAITING)
    local gate = dap.root .. '/gate'
    local answer = dap.run(path, { args = { gate }, wait_timeout_ms = 50 })
    t.eq({ 'still_running', 50 }, { answer.status, answer.waited_ms })
    dap.fails('tool_error', 'no stopped thread.*dap_wait_until_paused.*dap_pause', 'dap_stacktrace')
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
    dap.fails('not_found', 'has ended %(exit code 0%)', 'dap_continue')
  end)

  it('ends if the call that starts it is cancelled', function()
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
    call.cancel()
    t.eq('cancelled', select(2, call.wait()).code)
    t.wait(function()
      return next(dap.dap().sessions()) == nil
    end, 10000, 'the end of the session')
  end)

  it('continues if a wait for it is cancelled', function()
    local gate = dap.root .. '/gate'
    dap.run(dap.write('waiting.py', WAITING), { args = { gate }, wait_until_paused = false })
    local call = dap.start('dap_wait_until_paused')
    call.cancel()
    t.eq('cancelled', select(2, call.wait()).code)
    dap.write('gate', '')
    t.eq(0, dap.ok('dap_wait_until_paused').exit_code)
  end)
end)

describe('a child session', function()
  it('is the one that tools use; both are listed', function()
    local adapter = dap.checkout .. '/tests/lua/fixtures/dap_adapter.py'
    dap.dap().adapters.many = { type = 'executable', command = dap.python, args = { adapter } }
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

describe('the end of a program', function()
  it('is reported with exit code and output; the output is kept', function()
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
    t.eq({ 'ended', 'test' }, { sessions[#sessions].status, sessions[#sessions].name })
    t.eq(3, sessions[#sessions].exit_code)
    t.eq(false, dap.ok('dap_status').active)
  end)

  it('by an exception is reported with its type and message', function()
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
    dap.fails('validation_error', "no 'sometimes' %(it has: .*raised", 'dap_exceptions', { filters = { 'sometimes' } })
    for _, filter in ipairs(dap.ok('dap_exceptions', { filters = { 'raised' } }).filters) do
      t.eq(filter.filter == 'raised', filter.active)
    end
    local asked = {}
    dap.dap().listeners.before.setExceptionBreakpoints.test = function(_, _, _, arguments)
      table.insert(asked, arguments.filters)
    end
    dap.ok('dap_exceptions', { filters = { 'uncaught' } })
    dap.ok('dap_exceptions', { filters = { 'raised' } })
    dap.dap().listeners.before.setExceptionBreakpoints.test = nil
    t.eq({ { 'uncaught' }, { 'raised' } }, asked)
    local again = dap.ok('dap_restart')
    t.eq({ 'exception', 'f (broken.py:2)' }, { again.reason, again.at })
    local ended = dap.ok('dap_terminate')
    t.eq({ true, 'ended' }, { ended.success, ended.status })
    t.eq(nil, dap.dap().session())
    dap.fails('not_found', '', 'dap_disconnect')
  end)
end)

--- Two windows, the cursor in the second one, a file beside it, a register and a search.
local function prepare_user()
  vim.cmd.edit(dap.write('notes.txt', ('line\n'):rep(30)))
  vim.cmd.vsplit(dap.write('other.txt', ('other\n'):rep(30)))
  vim.cmd.edit(dap.root .. '/notes.txt')
  vim.api.nvim_win_set_cursor(0, { 7, 2 })
  vim.fn.setreg('a', 'kept')
  vim.fn.setreg('/', 'searched')
end

--- State of the user that tools must not change. Debugged files are loaded, but not listed.
local function view()
  local listed = vim.fn.getbufinfo({ buflisted = 1 })
  return vim.tbl_extend('force', tool_calls.view(), { buffers = #listed, messages = '' })
end

describe('the user', function()
  it('keeps window, cursor, files and registers during a session of tools', function()
    local path = dap.write('loop.py', dap.LOOP)
    prepare_user()
    vim.cmd('normal! 3j') -- a count of theirs is no count of a step
    local before = view()
    dap.ok('dap_set_breakpoint', { filename = path, line = 6 })
    t.eq('total (loop.py:6)', dap.run(path).at)
    t.eq(before, view())
    t.eq('total (loop.py:7)', dap.ok('dap_step_over').at)
    dap.ok('dap_run_to', { filename = path, line = 8 })
    dap.ok('dap_step_out')
    dap.ok('dap_evaluate', { expression = '1' })
    dap.ok('dap_remove_breakpoint', { filename = path, line = 6 })
    t.eq('ended', dap.ok('dap_continue').status)
    t.eq(before, view())
  end)

  it('sees the stop after a step of their own, as always', function()
    local path = dap.write('loop.py', dap.LOOP)
    prepare_user()
    dap.ok('dap_set_breakpoint', { filename = path, line = 6 })
    dap.run(path)
    local session = dap.dap().session()
    session:request('next', { threadId = session.stopped_thread_id }, function() end)
    t.wait(function()
      return vim.api.nvim_buf_get_name(0) == path and vim.api.nvim_win_get_cursor(0)[1] == 7
    end, 10000, 'the jump to the stop')
    local told = dap.ok('dap_wait_until_paused')
    t.eq({ 'step', 'total (loop.py:7)' }, { told.reason, told.at })
  end)
end)
