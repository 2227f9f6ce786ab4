-- slow
local p = require('tools_project')
local t = require('helpers')

p.each({ 'shell' })

--- The number that a command writes to a file.
local function pid_in(name)
  return t.wait(function()
    local file = io.open(p.root .. '/' .. name)
    local text = file and file:read('*a') or ''
    if file then
      file:close()
    end
    return text:match('^(%d+)\n')
  end, 5000, 'the number in ' .. name)
end

describe('shell_run', function()
  it('runs a command line or an executable, with directory, environment and input', function()
    local done = p.ok('shell_run', { command = 'pwd; echo "$A" >&2; exit 3', env = { A = 'value' } })
    t.eq({ p.root .. '\n', 'value\n', 3 }, { done.stdout, done.stderr, done.exit_code })
    t.ok(done.duration_ms >= 0)
    vim.fn.mkdir(p.root .. '/sub')
    done = p.ok('shell_run', { argv = { 'sh', '-c', 'echo "$1|$PWD"; cat', 'x', 'a  b' }, cwd = 'sub', stdin = 'in' })
    t.eq({ 'a  b|' .. p.root .. '/sub\nin', nil, 0 }, { done.stdout, done.stderr, done.exit_code })
  end)

  it('is refused without a question if the command or its input is too long', function()
    local preview = require('mcp-tools.tools.shell.run').preview
    local long = ('\n'):rep(40000)
    for _, args in ipairs({
      { command = 'true ' .. long .. long },
      { argv = { 'true', long, long } },
      { command = 'true' .. long, env = { A = long } },
    }) do
      t.fails('validation_error', 'longer than 65536 bytes', preview(args))
    end
    p.fails('validation_error', 'command: .*65536', 'shell_run', { command = long .. long })
    p.fails('validation_error', 'stdin: .*65536', 'shell_run', { command = 'true', stdin = long .. long })
  end)

  it('does not block the main thread, however long a line of output is', function()
    for _, command in ipairs({
      [[printf '%0200000d\rdone\n' 1]],
      [[printf '%0100000d' 1; printf '%0100000d' 1 | tr 01 '\b\b'; echo done]],
      [[printf '%0200000d\r\n' 1; echo done]],
    }) do
      local check_turns = t.watch_turns()
      local done = p.ok('shell_run', { command = command, max_bytes = 262144 })
      check_turns()
      t.matches('done\n$', done.stdout)
    end
  end)

  it('returns the end of long output, and reports progress', function()
    local seen = {}
    local call = p.start('shell_run', { command = 'seq 1 20000; echo "\27[31mlast\27[0m"', max_bytes = 100 }, {
      on_progress = function(progress) table.insert(seen, progress) end,
    })
    local done = call.wait()
    t.eq(true, done.cut)
    t.matches('^%d%d%d%d%d\n.*20000\nlast\n$', done.stdout)
    t.ok(#done.stdout <= 100)
    t.eq('last', t.ok(seen[#seen]).message)
  end)

  it('returns the end of a long stderr, and that it was cut', function()
    local script = 'seq 1 60000 >&2'
    local done = p.ok('shell_run', { command = script, max_bytes = 262144 })
    t.eq(true, done.cut)
    t.ok(#done.stderr > 262000 and #done.stderr <= 262144)
    done = p.ok('shell_run', { command = script, max_bytes = 100 })
    t.eq(true, done.cut)
    t.matches('^%d%d%d%d%d\n.*60000\n$', done.stderr)
  end)

  it('names files with unsaved changes', function()
    t.eq(nil, p.ok('shell_run', { command = 'true' }).unsaved)
    vim.cmd.edit(p.write('a.txt', 'old\n'))
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'new' })
    local done = p.ok('shell_run', { command = 'cat a.txt' })
    t.eq({ 'old\n', { 'a.txt' } }, { done.stdout, done.unsaved })
  end)

  it('withholds secrets', function()
    p.write('.env', 'KEY=hidden-value\n')
    local seen = {}
    local script = 'cat .env; echo password: letmein; echo ghp_' .. ('a1'):rep(18) .. '; echo it is hidden-value'
    local done = p.start('shell_run', { command = script }, {
      on_progress = function(progress) table.insert(seen, progress.message) end,
    }).wait()
    t.eq('[secret]\npassword: [secret]\n[secret]\nit is [secret]\n', done.stdout)
    t.ok(not table.concat(seen, '\n'):find('hidden', 1, true))
    p.write('.env', 'KEY=changed-value\n')
    local job = p.ok('shell_jobs', { action = 'start', command = 'cat .env; echo hidden-value', wait_ms = 5000 })
    t.wait(function()
      job = p.ok('shell_jobs', { action = 'read', id = job.id, since = 0, wait_ms = 100 })
      return not job.running
    end, 5000, 'its end')
    t.eq('[secret]\n[secret]\n', job.output)
  end)

  it('refuses invalid arguments', function()
    p.fails('validation_error', 'exactly one of command and argv', 'shell_run', {})
    p.fails('validation_error', 'exactly one', 'shell_run', { command = 'true', argv = { 'true' } })
    p.fails('validation_error', 'command: is empty', 'shell_run', { command = ' \n' })
    p.fails('validation_error', 'argv', 'shell_run', { argv = {} })
    p.fails('not_found', 'cwd: there is no directory', 'shell_run', { command = 'true', cwd = 'none' })
    p.fails('not_found', '^argv: .*no%-such%-program', 'shell_run', { argv = { 'no-such-program' } })
    t.eq(127, p.ok('shell_run', { command = 'no-such-program' }).exit_code)
    local actual = p.text('shell_run', { command = 'echo out; echo err >&2; exit 3' })
    t.matches('^exit 3, %d+%.%d s\nout\nstderr:\nerr\n$', actual)
    local killed = p.ok('shell_run', { command = 'kill -9 $$' })
    t.eq({ nil, 9 }, { killed.exit_code, killed.signal })
  end)

  it('ends all its processes after a timeout or a cancel', function()
    local script = '(sleep 100 & echo $! > child; wait) & echo some; sleep 100'
    local done = p.ok('shell_run', { command = script, timeout_ms = 300 })
    t.eq({ true, nil, 'some\n' }, { done.timed_out, done.exit_code, done.stdout })
    local pids = { pid_in('child') }
    vim.fn.delete(p.root .. '/child')
    local call = p.start('shell_run', { command = script })
    pids[2] = pid_in('child')
    call.cancel()
    t.eq('cancelled', select(2, call.wait()).code)
    t.wait(function() return p.gone(pids[1]) and p.gone(pids[2]) end, 3000, 'the end of what it started')
  end)

  it('needs approval, with the command as preview', function()
    p.refuse({ 'shell' })
    p.fails('access_denied', '', 'shell_run', { command = 'touch ran' })
    p.fails('access_denied', '', 'shell_jobs', { action = 'start', command = 'touch ran' })
    local list = vim.inspect(p.ok('shell_jobs', { action = 'list' }).jobs)
    t.ok(not list:find('touch ran', 1, true), list)
    t.eq(nil, vim.uv.fs_stat(p.root .. '/ran'))
    local run, jobs = require('mcp-tools.tools.shell.run'), require('mcp-tools.tools.shell.jobs')
    t.matches('^in .*\nA=b\n%$ ls %-l$', run.preview({ command = 'ls -l', env = { A = 'b' } }))
    t.matches("\n%$ echo 'a b' 'it'\\''s'$", run.preview({ argv = { 'echo', 'a b', "it's" } }))
    local forged = run.preview({ argv = { 'rm', 'a\nin /safe\n$ ls' }, env = { A = "x\n$ l's" } })
    t.eq({ "A=$'x\\n$ l\\'s'", "$ rm $'a\\nin /safe\\n$ ls'" }, vim.list_slice(vim.split(forged, '\n'), 2))
    t.matches('\n%$ ls$', jobs.preview({ action = 'start', command = 'ls' }))
  end)
end)

describe('shell_jobs', function()
  local function jobs(action, args) return p.ok('shell_jobs', vim.tbl_extend('force', { action = action }, args or {})) end

  it('starts, reads from an offset, lists and stops', function()
    local script = 'echo one; printf part; while [ ! -e go ]; do sleep 0.02; done; echo -end >&2; exec sleep 100'
    local job = jobs('start', { command = script, wait_ms = 5000 })
    t.eq({ true, 0 }, { job.running, job.offset })
    local text, partial = job.output, job.partial
    t.wait(function()
      if partial ~= 'part' then
        local more = jobs('read', { id = job.id, since = job.next_offset, wait_ms = 100 })
        text, partial, job.next_offset = text .. more.output, more.partial, more.next_offset
      end
      return text == 'one\n' and partial == 'part'
    end, 5000, 'the beginning of its output')
    p.write('go', '')
    local more
    t.wait(function()
      more = jobs('read', { id = job.id, since = 4, wait_ms = 100 })
      return more.output ~= ''
    end, 5000, 'the rest')
    t.eq({ 'part-end\n', 4, 13, nil }, { more.output, more.offset, more.next_offset, more.partial })
    local listed = jobs('list').jobs
    local last = listed[#listed]
    t.eq({ job.id, script, true, 13 }, { last.id, last.command, last.running, last.bytes })
    local stopped = jobs('stop', { id = job.id })
    t.eq({ false, nil, 'one\npart-end\n' }, { stopped.running, stopped.exit_code, stopped.output })
    t.eq('', jobs('read', { id = job.id, since = stopped.next_offset, wait_ms = 60000 }).output)
  end)

  it('reads whole lines, and reports bytes that are no longer kept', function()
    local job = jobs('start', { command = 'seq 1 300000' })
    t.wait(function()
      job = jobs('read', { id = job.id, wait_ms = 100 })
      return not job.running
    end, 5000, 'its end')
    t.eq({ 0, 1988895 }, { job.exit_code, job.bytes })
    t.matches('^%d+\n.*\n300000\n$', job.output)
    local piece = jobs('read', { id = job.id, since = 0, max_bytes = 100 })
    t.eq(1988895 - 1024 * 1024, piece.skipped)
    t.ok(#piece.output <= 100)
    local next_piece = jobs('read', { id = job.id, since = piece.next_offset, max_bytes = 100 })
    t.eq(tonumber(piece.output:match('(%d+)\n$')) + 1, tonumber(next_piece.output:match('^(%d+)\n')))
  end)

  describe('belong to the session that started them;', function()
    local first = { session = 'one', client = { name = 'agent' } }
    local second = { session = 'two', client = { name = 'agent' } }

    local function call(who, args) return p.call_for(who, 'shell_jobs', args) end

    it('another client neither sees nor stops them', function()
      local job = assert(call(first, { action = 'start', command = 'exec sleep 100' }))
      for _, who in ipairs({ { session = 'two', client = { name = 'other' } }, {} }) do
        for _, action in ipairs({ 'read', 'stop' }) do
          t.eq({ nil, 'not_found' }, { call(who, { action = action, id = job.id }) })
        end
        t.eq(0, #call(who, { action = 'list' }).jobs)
      end
      p.refuse({ 'shell' })
      t.eq(false, call(first, { action = 'stop', id = job.id }).running)
    end)

    it('a later session of the client sees them, and needs approval to read and stop them', function()
      local job = assert(call(first, { action = 'start', command = 'exec sleep 100' }))
      local listed = call(second, { action = 'list' }).jobs
      t.eq({ job.id, true }, { listed[#listed].id, listed[#listed].other_session })
      t.eq(false, call(second, { action = 'stop', id = job.id }).running)
      job = assert(call(first, { action = 'start', command = 'exec sleep 100' }))
      p.refuse({ 'shell' })
      for _, action in ipairs({ 'read', 'stop' }) do
        t.eq({ nil, 'access_denied' }, { call(second, { action = action, id = job.id }) })
      end
      t.eq(false, call(first, { action = 'stop', id = job.id }).running)
    end)

    it('the user lists and stops all of them', function()
      local job = assert(call(first, { action = 'start', command = 'exec sleep 100' }))
      require('mcp-tools.command').run({ args = 'jobs' })
      local shown = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
      t.matches(job.id .. ' +%d%d:%d%d:%d%d  agent: exec sleep 100', shown)
      local more = assert(call(first, { action = 'start', command = 'exec sleep 200' }))
      call(first, { action = 'stop', id = job.id })
      t.wait(function() -- the row of a job stays where it is
        local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
        return lines[1]:find('sleep 100 (ended)', 1, true) and lines[2] and lines[2]:find('sleep 200$')
      end, 5000, 'the window follows what starts and ends')
      require('mcp-tools.command').run({ args = 'jobs' })
      t.matches('sleep 200$', vim.api.nvim_buf_get_lines(0, 0, 1, false)[1])
      job = more
      require('mcp-tools.command').run({ args = 'jobs stop all' })
      t.wait(function() return not call(first, { action = 'read', id = job.id }).running end, 5000)
    end)
  end)

  it('refuse invalid arguments', function()
    p.fails('not_found', 'no job job999', 'shell_jobs', { action = 'read', id = 'job999' })
    p.fails('not_found', 'none given', 'shell_jobs', { action = 'stop' })
    p.fails('validation_error', 'exactly one', 'shell_jobs', { action = 'start' })
    p.fails('validation_error', 'action', 'shell_jobs', { action = 'jump' })
    local job = jobs('start', { argv = { 'no-such-program' }, env = { PATH = '/none' }, wait_ms = 1000 })
    t.matches('cannot run', job.fault)
  end)

  it('are limited in number', function()
    for _, job in ipairs(jobs('list').jobs) do
      jobs('stop', { id = job.id })
    end
    local started = t.list(16, function() return jobs('start', { argv = { 'sleep', '100' } }).id end)
    p.fails('busy', '16 jobs', 'shell_jobs', { action = 'start', argv = { 'true' } })
    for _, id in ipairs(started) do
      t.eq(false, jobs('stop', { id = id }).running)
    end
  end)
end)
