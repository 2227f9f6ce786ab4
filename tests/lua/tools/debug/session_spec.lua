-- slow
-- Whole debug sessions: stepping, waits, pauses, cancelled calls, the end of a program, and what the user notices.

local dap = require('dap_project')
local t = require('helpers')

before_each(dap.open)
after_each(dap.close)

describe('a debug session', function()
  it('needs one call for a question, and half a kilobyte for each stop', function()
    local path = dap.write('loop.py', dap.LOOP)
    local sizes = {}
    local function checked(answer)
      sizes[#sizes + 1] = #vim.json.encode(answer)
      return answer
    end
    local points, expressions = { { path = 'loop.py', line = 6 } }, { 'numbers + [4]' }
    local first = checked(dap.run('loop.py', { breakpoints = points, expressions = expressions }))
    t.eq({ 'stopped', 'breakpoint', 'total (loop.py:6)' }, { first.status, first.reason, first.at })
    t.eq({ 'main (loop.py:12)', '<module> (loop.py:16)' }, first.callers)
    t.eq({ 'n = 1', 'numbers = [1, 2, 3]', 'sum_ = 0' }, first.locals)
    t.matches('\n>6         sum_ %+= n\n', first.code)
    t.eq('[1, 2, 3, 4]', first.values[1].value)
    local step = checked(dap.step('over'))
    t.eq({ 'step', 'total (loop.py:7)', { 'sum_ = 1' } }, { step.reason, step.at, step.changed })
    t.eq(nil, step.locals)
    local second = checked(dap.step('continue'))
    t.eq({ 'breakpoint', 'add 1', { 'n = 2' } }, { second.reason, second.output, second.changed })
    dap.ok('debug_breakpoints', { clear = true })
    local last = dap.step('continue')
    t.eq({ 'ended', 0, 'add 2\nadd 3\ntotal 6' }, { last.status, last.exit_code, last.output })
    t.eq('add 1\nadd 2\nadd 3\ntotal 6', dap.ok('debug_inspect').output)
    for _, size in ipairs(sizes) do
      t.ok(size <= 800, ('an answer has %d bytes'):format(size))
    end
    t.eq(path, vim.api.nvim_buf_get_name(vim.fn.bufnr(path)))
  end)

  it('is text for clients', function()
    dap.write('loop.py', dap.LOOP)
    local points = { { path = 'loop.py', line = 6 } }
    local text = dap.text('debug_run', { program = 'loop.py', breakpoints = points })
    t.matches({ '^stopped %(breakpoint%) in total %(loop%.py:6%)\n', '\n>6         sum_ %+= n\n' }, text)
    t.matches('\ncalled by main %(loop%.py:12%) < <module> %(loop%.py:16%)\nlocals:\n  n = 1\n', text)
    text = dap.text('debug_step', { how = 'restart', expressions = { 'sum_ + 1', 'no' } })
    t.matches(
      '^stopped %(breakpoint%) in total %(loop%.py:6%)\n6         sum_ %+= n\nsum_ %+ 1 = 1\nno = .*defined',
      text
    )
    t.ok(not text:find('locals:', 1, true) and not text:find('called by', 1, true), text)
    t.matches('^stopped .*\nchanged since the last stop:\n  sum_ = 1$', dap.text('debug_step', { how = 'over' }))
    t.matches('\nstack:\n  0 total %(loop%.py:7%)\n  1 main', dap.text('debug_inspect'))
    t.eq('1 breakpoint\nloop.py:6: sum_ += n', dap.text('debug_breakpoints'))
    t.matches('^ended', dap.text('debug_step', { how = 'stop' }))
  end)
end)

--- A program that waits until a file exists.
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

it('a launch that is cancelled immediately starts nothing', function()
  local path = dap.write('waiting.py', WAITING)
  local call = dap.start('debug_run', { program = path, args = { dap.root .. '/gate' } })
  call.cancel()
  t.eq('cancelled', select(2, call.wait(0)).code)
  vim.wait(300, function() return next(dap.dap().sessions()) ~= nil end, 10)
  t.eq({}, vim.tbl_keys(dap.dap().sessions()))
end)

describe('a running program', function()
  it('is not an error after a timeout, can be paused, and its stop is reported immediately', function()
    local path = dap.write('waiting.py', WAITING)
    local gate = dap.root .. '/gate'
    local answer = dap.run(path, { args = { gate }, timeout_ms = 50 })
    t.eq({ 'running', 50 }, { answer.status, answer.waited_ms })
    dap.fails('tool_error', "running; debug_step with how='wait'", 'debug_step', { how = 'over' })
    dap.fails('tool_error', 'running', 'debug_inspect', { expressions = { '1' } })
    t.eq('running', dap.ok('debug_inspect').status)
    t.matches("how='wait'", dap.text('debug_step', { how = 'wait', timeout_ms = 10 }))
    t.wait(function() -- until it has come to its loop
      return dap.ok('debug_inspect').output == 'begun'
    end, 10000, 'output')
    local paused = dap.step('pause', { timeout_ms = 10000 })
    t.eq({ 'stopped', 'pause' }, { paused.status, paused.reason })
    t.matches('waiting%.py', vim.inspect({ paused.at, paused.callers }))
    t.eq('stopped', dap.step('wait', { timeout_ms = 0 }).status)
    t.eq({ 'stopped', 'stopped' }, { dap.step('pause').status, dap.ok('debug_inspect').status })
    t.eq('running', dap.step('continue', { timeout_ms = 0 }).status)
    dap.write('gate', '')
    local ended = dap.step('wait', { timeout_ms = 10000 })
    t.eq({ 'ended', 0 }, { ended.status, ended.exit_code })
    t.matches('done', ended.output)
    dap.fails('not_found', 'has ended %(exit code 0%)', 'debug_step', { how = 'continue' })
  end)

  it('ends if the call that starts it is cancelled, and its breakpoints are removed', function()
    local path = dap.write('waiting.py', WAITING)
    local points = { { path = path, line = 7 } }
    local call = dap.start('debug_run', { program = path, args = { dap.root .. '/gate' }, breakpoints = points })
    t.wait(function()
      local session = dap.dap().session()
      return session and session.initialized
    end, 10000, 'the start')
    call.cancel()
    t.eq('cancelled', select(2, call.wait()).code)
    t.wait(function() return next(dap.dap().sessions()) == nil end, 10000, 'the end of the session')
    t.eq(0, dap.ok('debug_breakpoints').total)
  end)

  it('continues if a wait for it is cancelled', function()
    local gate = dap.root .. '/gate'
    dap.run(dap.write('waiting.py', WAITING), { args = { gate }, timeout_ms = 0 })
    local call = dap.start('debug_step', { how = 'wait' })
    call.cancel()
    t.eq('cancelled', select(2, call.wait()).code)
    dap.write('gate', '')
    t.eq(0, dap.step('wait').exit_code)
  end)
end)

it('uses its child session for tools; both are listed', function()
  local adapter = dap.checkout .. '/tests/lua/fixtures/dap_adapter.py'
  dap.dap().adapters.many = { type = 'executable', command = dap.python, args = { adapter } }
  local answer = dap.ok('debug_run', { options = { type = 'many', name = 'parent' } })
  t.eq({ 'stopped', 'breakpoint', { 'who = child' } }, { answer.status, answer.reason, answer.locals })
  local here = dap.ok('debug_inspect')
  t.eq('child', here.locals[1].value)
  local parent, child = unpack(here.sessions, #here.sessions - 1)
  t.matches('^%d+ parent %(many%): running', parent)
  t.matches('^' .. answer.session_id .. ' child %(many%): stopped in ', child)
  local later = dap.step('continue', { timeout_ms = 200 })
  t.eq({ 'running', 'bye', 'ended' }, { later.status, later.output, dap.step('stop').status })
  t.eq(nil, dap.dap().session())
end)

describe('the end of a program', function()
  it('is reported with exit code and output; the output is kept', function()
    local path = dap.write('short.py', 'import sys\nprint("out")\nprint("err", file=sys.stderr)\nsys.exit(3)\n')
    local answer = dap.run(path, { exceptions = false })
    t.eq({ 'ended', 3 }, { answer.status, answer.exit_code })
    t.matches('out', answer.output)
    local later = dap.ok('debug_inspect')
    t.eq({ 'ended', 3 }, { later.status, later.exit_code })
    t.matches({ 'out', 'err' }, later.output)
    local last = dap.ok('debug_inspect', { output = 1 })
    t.eq({ 1, 1 }, { #vim.split(last.output, '\n'), last.output_left_out })
  end)

  it('by an exception is reported with its type and message', function()
    local path = dap.write('broken.py', 'def f(password):\n    raise ValueError("no " + "way")\n\nf("pa55word")\n')
    local answer = dap.run(path)
    t.eq({ 'exception', 'f (broken.py:2)', 'no way' }, { answer.reason, answer.at, answer.exception.message })
    t.matches('ValueError', answer.exception.type)
    t.eq({ 'password = [secret]' }, answer.locals)
    local again = dap.step('restart')
    t.eq({ 'exception', 'f (broken.py:2)' }, { again.reason, again.at })
    t.eq({ 'ended', nil }, { dap.step('stop').status, (dap.dap().session()) })
    dap.fails('not_found', '', 'debug_step', { how = 'detach' })
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
  return vim.tbl_extend('force', require('editor_project').view(), { buffers = #listed, messages = '' })
end

describe('the user', function()
  it('keeps window, cursor, files and registers during a session of tools', function()
    local path = dap.write('loop.py', dap.LOOP)
    prepare_user()
    vim.cmd('normal! 3j') -- a count of theirs is no count of a step
    local before = view()
    t.eq('total (loop.py:6)', dap.run(path, { breakpoints = { { path = path, line = 6 } } }).at)
    t.eq({ before, 'total (loop.py:7)' }, { view(), dap.step('over').at })
    dap.step('to_line', { path = path, line = 8 })
    dap.step('out')
    dap.ok('debug_inspect', { expressions = { '1' } })
    dap.ok('debug_breakpoints', { clear = true })
    t.eq({ 'ended', before }, { dap.step('continue').status, (view()) })
  end)

  it('sees the stop after their own step', function()
    local path = dap.write('loop.py', dap.LOOP)
    prepare_user()
    dap.set(path, 6)
    dap.run(path)
    local session = dap.dap().session()
    session:request('next', { threadId = session.stopped_thread_id }, function() end)
    t.wait(
      function() return vim.api.nvim_buf_get_name(0) == path and vim.api.nvim_win_get_cursor(0)[1] == 7 end,
      10000,
      'the jump to the stop'
    )
    local stopped = dap.step('wait')
    t.eq({ 'step', 'total (loop.py:7)' }, { stopped.reason, stopped.at })
  end)
end)

it('the tools of guill/mcp-tools.nvim are answered by the four', function()
  local path = dap.write('loop.py', dap.LOOP)
  local options = { type = 'python', request = 'launch', name = 'loop', cwd = dap.root }
  t.eq(1, dap.ok('dap_set_breakpoint', { filename = path, line = 6 }).total)
  t.eq('none', dap.ok('dap_status').status)
  local first = dap.ok(
    'dap_run',
    vim.tbl_extend('force', options, {
      program = '${workspaceFolder}/loop.py',
      wait_until_paused = true,
      wait_timeout_ms = 20000,
    })
  )
  t.eq('total (loop.py:6)', first.at)
  t.eq('1', dap.ok('dap_evaluate', { expression = 'n', frame_id = 1, context = 'repl' }).values[1].value)
  for _, name in ipairs({ 'stacktrace', 'threads', 'current_location', 'scopes', 'variables', 'program_output' }) do
    t.eq('total (loop.py:6)', dap.ok('dap_' .. name, { timeout_ms = 5000 }).at)
  end
  t.eq('total (loop.py:7)', dap.ok('dap_step_over', { wait_until_paused = true }).at)
  dap.ok('dap_clear_breakpoints')
  t.eq('total (loop.py:8)', dap.ok('dap_run_to', { filename = path, line = 8 }).at)
  t.eq('running', dap.ok('dap_continue', { wait_until_paused = false }).status)
  t.eq('ended', dap.ok('dap_wait_until_paused', { timeout_ms = 20000, check_interval_ms = 5 }).status)
  dap.fails('not_found', 'has ended', 'dap_terminate')
  dap.fails('not_found', 'has ended', 'dap_disconnect', { terminate_debuggee = false })
end)
