-- slow, every Neovim
local calls = require('mcp-tools.calls.call')
local process = require('mcp-tools.editor.process')
local project = require('tools_project')
local t = require('helpers')

local function new_call()
  local call = calls.new({ id = 'c', name = 'x', host = 'nvim' })
  call:move('start')
  return call
end

--- Runs a command for a call; returns functions that wait and cancel.
local function run(command, opts)
  local result
  local call = new_call()
  local ctx = { call = call }
  local handle = process.run(command, vim.tbl_extend('force', { cwd = '/', ctx = ctx }, opts or {}), function(got)
    assert(not vim.in_fast_event() and not result)
    result = got
  end)
  t.eq(nil, result) -- never before `run` returns
  return function()
    return t.wait(function() return result end, 5000)
  end,
    function() call:cancel('user') end,
    handle
end

local function sh(script, opts) return run({ 'sh', '-c', script }, opts) end

local gone = project.gone

local function ms_since(start) return (vim.uv.hrtime() - start) / 1e6 end

describe('a command', function()
  it('that is missing is not started to detect that', function()
    local started, result, other, there = {}, nil, nil, nil
    t.calls(vim.uv, 'spawn', function()
      result = run({ 'no-such-program-anywhere' })()
      other = run({ 'no-such-program-anywhere' }, { env = { PATH = 'here:/bin' } })() -- which cannot be checked
      there = run({ 'true' })()
    end, function(_, program) table.insert(started, program) end)
    t.matches('no%-such%-program%-anywhere: no such file or directory', result.fault)
    t.eq(result.fault, other.fault)
    t.ok(there.ok)
    t.eq({ 'no-such-program-anywhere', 'true' }, started)
  end)

  it('returns its output, and runs in its directory', function()
    local result = run({ 'pwd' }, { cwd = '/usr' })()
    t.eq({ true, '/usr\n', 0, false }, { result.ok, result.stdout, result.code, result.cut })
  end)

  it('inherits the environment, without token and address of the editor', function()
    vim.env.MCP_AUTH_TOKEN = 'secret'
    vim.env.NVIM = '/some/socket'
    vim.env.SPEC_VALUE = 'a=b c'
    local text = run({ 'env' })().stdout
    local other = run({ 'env' }, { env = { SPEC_VALUE = false, SPEC_OTHER = 'x' } })().stdout
    vim.env.MCP_AUTH_TOKEN, vim.env.NVIM, vim.env.SPEC_VALUE = nil, nil, nil
    t.matches('SPEC_VALUE=a=b c\n', text)
    for _, name in ipairs({ 'MCP_AUTH_TOKEN', 'NVIM', 'NVIM_LISTEN_ADDRESS' }) do
      t.ok(not ('\n' .. text):find('\n' .. name .. '=', 1, true), name)
    end
    t.matches('SPEC_OTHER=x\n', other)
    t.ok(not other:find('SPEC_VALUE', 1, true))
  end)

  it('fails with its error message, or because it cannot be run', function()
    local result = run({ 'sh', '-c', 'echo no >&2; exit 3' })()
    t.eq({ false, 'no', 3, false }, { result.ok, result.fault, result.code, result.quiet })
    result = run({ 'sh', '-c', 'exit 1' })()
    t.eq({ 'sh exited with 1', true }, { result.fault, result.quiet })
    t.matches('cannot run no%-such%-program', run({ 'no-such-program' })().fault)
    t.matches('killed by signal 9', sh('kill -9 $$')().fault)
  end)

  it('is refused with an invalid directory or argument', function()
    t.matches('no directory /no/such', run({ 'true' }, { cwd = '/no/such' })().fault)
    t.matches('no directory /etc/passwd', run({ 'true' }, { cwd = '/etc/passwd' })().fault)
    t.matches('NUL byte', run({ 'echo', 'a\0b' })().fault)
    local result = run({ 'echo', ('x'):rep(4 * 1024 * 1024) })()
    t.eq({ false, nil }, { result.ok, result.code })
    t.matches('^cannot run echo: ', result.fault)
  end)

  it('returns bytes, but its fault is valid UTF-8', function()
    local result = sh([[printf 'a\377\0b'; printf 'no \377\nmore' >&2; exit 1]])()
    t.eq({ 'a\255\0b', 'no \239\191\189' }, { result.stdout, result.fault })
  end)

  it('reads its stdin, which is empty by default', function()
    local text = ('line\n'):rep(200000)
    t.ok(run({ 'cat' }, { stdin = text })().stdout == text)
    t.eq({ true, '' }, { run({ 'true' }, { stdin = text })().ok, run({ 'cat' })().stdout })
  end)
end)

describe('a limit', function()
  it('of time starts with the process', function()
    local result = run({ 'sleep', '20' }, { timeout = 100 })()
    t.matches('sleep .* 0%.1 s', result.fault)
    t.eq('timeout', result.ended_by)
    vim.uv.sleep(400) -- the loop's own idea of the time is old now
    t.eq(true, run({ 'sleep', '0.2' }, { timeout = 390 })().ok)
  end)

  it('of output ends the process, or keeps the last bytes', function()
    local result = run({ 'yes' }, { limit = 1000 })()
    t.eq({ true, true, 1000, 'limit' }, { result.ok, result.cut, #result.stdout, result.ended_by })
    t.eq(false, sh('printf %1000s', { limit = 1000 })().cut)
    result = sh('printf %1001s', { limit = 1000 })()
    t.eq({ true, 1000 }, { result.cut, #result.stdout })
    result = run({ 'seq', '1', '300000' }, { limit = 20, keep = 'tail' })()
    t.eq({ true, true, '99998\n299999\n300000\n' }, { result.ok, result.cut, result.stdout })
  end)

  it('of stderr keeps the last bytes', function()
    collectgarbage()
    local before = vim.uv.resident_set_memory()
    local result = sh('head -c 200000000 /dev/zero >&2; echo last words >&2; exit 1')()
    t.eq(64 * 1024, #result.stderr)
    t.matches('last words\n$', result.stderr)
    t.ok(vim.uv.resident_set_memory() - before < 64 * 1024 * 1024)
  end)

  it('closes all files', function()
    local function files() return #vim.fn.glob('/proc/self/fd/*', true, true) end
    run({ 'true' })()
    local before = files()
    for _ = 1, 20 do
      run({ 'true' }, { stdin = 'x' })()
      run({ 'no-such-program' })()
    end
    t.wait(function() return files() <= before end)
  end)
end)

describe('the end', function()
  local IGNORES = "trap '' TERM; sleep 60 & echo $$ $!; wait; sleep 60"

  --- Runs a script that prints pids and continues; asserts that `stop` ends all of them.
  local function ends_with(script, opts, stop)
    local pids = {}
    opts = vim.tbl_extend('force', opts, {
      on_output = function(_, text)
        for pid in text:gmatch('%d+') do
          table.insert(pids, tonumber(pid))
        end
      end,
    })
    local wait, cancel, handle = sh(script, opts)
    t.wait(function() return #pids >= 2 end)
    local start = vim.uv.hrtime()
    stop(cancel, handle)
    local result = wait()
    t.ok(ms_since(start) < 10000, ('it took %d ms'):format(ms_since(start)))
    for _, pid in ipairs(pids) do
      t.wait(function() return gone(pid) end, 1000, 'the end of ' .. pid)
    end
    return result, ms_since(start)
  end

  local function cancel_it(cancel) cancel() end

  it('comes when the call ends, for all descendants', function()
    local result
    local function run_and_cancel() result = ends_with('sleep 60 & echo $$ $!; wait', {}, cancel_it) end
    local signals = t.calls(vim.uv, 'kill', run_and_cancel)
    t.eq({ false, 'kill', 'sh was killed' }, { result.ok, result.ended_by, result.fault })
    t.eq(2, signals) -- SIGTERM and, without a pause, SIGKILL for the rest
    ends_with('sleep 60 >/dev/null 2>&1 & echo $$ $!; wait', {}, function(_, handle)
      handle:kill()
      handle:kill()
    end)
  end)

  it('comes for processes that ignore SIGTERM', function()
    local _, ms = ends_with(IGNORES, {}, cancel_it)
    t.ok(ms >= 900) -- SIGTERM comes first
    local result = ends_with(IGNORES, { timeout = 300 }, function() end)
    t.eq('timeout', result.ended_by)
  end)

  it('leaves time for output after SIGTERM', function()
    local script = [[trap 'echo bye; exit 0' TERM; echo $$ $$; while :; do sleep 0.02; done]]
    local result = ends_with(script, {}, cancel_it)
    t.matches('bye\n$', result.stdout)
    t.eq({ false, 0 }, { result.ok, result.code })
  end)

  it('does not wait for children that keep the output open', function()
    for _, script in ipairs({
      'sleep 60 & echo $!',
      "(trap '' TERM; sleep 60) & echo $!",
      'sleep 60 >&- 2>&- & echo $!',
    }) do
      local start = vim.uv.hrtime()
      local result = sh(script, { timeout = 20000 })()
      t.ok(ms_since(start) < 10000, script)
      t.eq({ true, 0 }, { result.ok, result.code })
      local pid = tonumber(result.stdout)
      t.wait(function() return gone(pid) end, 1000, script)
    end
    t.eq('late\n', sh('(sleep 0.05; echo late) &')().stdout)
  end)

  it('comes when the editor exits', function()
    local code = [[
      require('mcp-tools.editor.process').run(
        { 'sh', '-c', "trap '' TERM; sleep 60 & echo $$ $!; wait" }, { cwd = '/', on_output = function(_, text)
          io.stdout:write(text)
          io.stdout:flush()
          vim.cmd.qall({ bang = true })
        end }, function() end)
    ]]
    local command = { vim.v.progpath, '--clean', '-n', '--headless', '--cmd', 'set rtp^=' .. project.checkout }
    local done = vim.system(vim.list_extend(command, { '-c', 'lua ' .. code:gsub('%s+', ' ') })):wait(10000)
    t.eq(0, done.code)
    local count = 0
    for pid in done.stdout:gmatch('%d+') do
      count = count + 1
      t.wait(function() return gone(pid) end, 1000)
    end
    t.eq(2, count)
  end)

  it('is not followed by a start while the editor exits', function()
    local file = vim.fn.tempname()
    local code = [[
      local done
      require('mcp-tools.editor.process').run({ 'touch', '%s' }, { cwd = '/' }, function(result)
        done = result
      end)
      vim.api.nvim_create_autocmd('VimLeave', { callback = function()
        vim.wait(2000, function() return done end)
        io.stdout:write(done.fault or 'started')
      end })
      vim.cmd.qall({ bang = true })
    ]]
    local command = { vim.v.progpath, '--clean', '-n', '--headless', '--cmd', 'set rtp^=' .. project.checkout }
    code = code:format(file):gsub('%s+', ' ')
    local done = vim.system(vim.list_extend(command, { '-c', 'lua ' .. code })):wait(5000)
    t.eq('cannot run touch: Neovim is exiting', done.stdout)
    t.eq(nil, vim.uv.fs_stat(file))
  end)
end)

describe('a callback', function()
  it('receives output as it arrives', function()
    local heard, at_end = {}, nil
    local wait = run({ 'sh', '-c', 'echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three' }, {
      on_output = function(stream, text)
        assert(not vim.in_fast_event())
        table.insert(heard, stream .. ' ' .. text)
        at_end = #heard
      end,
    })
    local result = wait()
    t.eq({ 'stdout one\n', 'stderr two\n', 'stdout three\n' }, heard)
    t.eq({ 3, 'one\nthree\n' }, { at_end, result.stdout })
  end)

  it('receives a limited part of fast output', function()
    local most, total = 0, 0
    local result = sh('head -c 50000000 /dev/zero', {
      keep = 'tail',
      limit = 100000,
      on_output = function(_, text)
        most, total = math.max(most, #text), total + #text
        vim.uv.sleep(5)
      end,
    })()
    t.eq({ true, 100000 }, { result.ok, #result.stdout })
    t.ok(most <= 100000 and total > 0)
  end)

  it('belongs to a start in its own iteration of the event loop, before which it can be killed', function()
    local uv, turn, turns, results, handles = vim.uv, 0, {}, {}, {}
    local counter = assert(uv.new_prepare())
    counter:start(function() turn = turn + 1 end)
    t.calls(uv, 'spawn', function()
      for i = 1, 4 do
        handles[i] = process.run({ 'true' }, { cwd = '/' }, function(result) results[i] = result end)
      end
      handles[2]:kill()
      t.eq({}, turns)
      t.wait(function() return results[1] and results[2] and results[3] and results[4] end, 5000)
    end, function() table.insert(turns, turn) end)
    counter:close()
    t.eq({ true, false, true, true }, { results[1].ok, results[2].ok, results[3].ok, results[4].ok })
    t.eq({ 'kill', nil, 'true was killed' }, { results[2].ended_by, results[2].code, results[2].fault })
    t.ok(#turns == 3 and turns[1] > 0 and turns[2] > turns[1] and turns[3] > turns[2])
  end)

  it('follows the end of its call, whatever it is', function()
    local ends = { finish = { 'finish', {} }, fail = { 'tool_error', 'broken' }, time_out = { 1 }, cancel = { 'user' } }
    for method, args in pairs(ends) do
      local before, after = new_call(), new_call()
      local results = {}
      local function note(result) table.insert(results, result.ended_by or result.fault) end
      process.run({ 'sleep', '100' }, { cwd = '/', ctx = { call = before } }, note)
      before[method](before, unpack(args))
      after[method](after, unpack(args))
      process.run({ 'sleep', '100' }, { cwd = '/', ctx = { call = after } }, note)
      t.wait(function() return #results == 2 end, 5000)
      t.eq({ 'kill', 'kill' }, results)
    end
  end)

  it('does not keep the output of an ended process until the call ends', function()
    local call = new_call()
    collectgarbage()
    local before = collectgarbage('count')
    for _ = 1, 20 do
      local done
      local opts = { cwd = '/', ctx = { call = call } }
      process.run({ 'head', '-c', '1000000', '/dev/zero' }, opts, function() done = true end)
      t.wait(function() return done end)
    end
    collectgarbage()
    t.ok(collectgarbage('count') - before < 5000)
  end)

  it('that throws fails its call', function()
    local thrown = {}
    local function threw(_, err) table.insert(thrown, err.value) end
    local function raise(text)
      return function() error(text, 0) end
    end
    local opts = { cwd = '/', ctx = { call = new_call(), threw = threw }, on_output = raise('one') }
    process.run({ 'echo', 'x' }, opts, raise('two'))
    t.wait(function() return #thrown == 2 end)
    t.eq({ 'one', 'two' }, thrown)
  end)
end)
