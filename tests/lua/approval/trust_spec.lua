local Call = require('mcp-tools.calls.call')
local Gateway = require('mcp-tools.approval.gateway')
local Ledger = require('mcp-tools.approval.ledger')
local config = require('mcp-tools.config')
local executors = require('executors')
local notifications = require('notifications')
local t = require('helpers')

local base = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/trust-spec'
local root, outside = base .. '/project', base .. '/outside'

--- A gateway, registry and executor of its own; `asked` lists the questions, `ran` the arguments of calls that ran.
local function setup()
  local b = { asked = {}, ran = {}, root = root }
  local function root_now() return b.root end
  b.gateway = Gateway.new({
    ask = function(asked, answer)
      asked.call:move('ask')
      table.insert(b.asked, asked)
      b.answer = answer
      if b.user then
        b.user(asked, answer)
      end
    end,
    root = root_now,
    ledger = Ledger.new({ dir = t.returns(base .. '/state') }),
  })
  local settings = { max_calls = 100, max_result = 10000, result_ttl = 1000 }
  b.executor, b.registry = executors.new(settings, b.gateway, root_now)
  function b.tool(def, source)
    local full = vim.tbl_extend('force', {
      name = 'x',
      description = 'does x',
      annotations = { destructive = true },
      execute = function(ctx, args)
        table.insert(b.ran, args)
        ctx('ran')
      end,
    }, def or {})
    assert(b.registry:add('tools', full, source))
  end
  function b.run(args, opts)
    local call = b.executor:execute((opts or {}).name or 'x', args, {
      host = 'mcp',
      session = (opts or { session = 's1' }).session,
      client = (opts or {}).client or { name = 'c' },
    })
    return call.outcome and (call.outcome.error and call.outcome.error.code or call.outcome.value) or call.state, call
  end
  --- The user gives this answer to each question from now on; nil: none.
  function b.reply(choice)
    b.user = choice and function(_, answer) answer(choice) end or nil
  end
  --- The same, and runs a call.
  function b.answered(choice, ...)
    b.reply(choice)
    return b.run(...)
  end
  b.tool()
  return b
end

--- Runs a call while the user denies: 'asked' when there was a question, else its result.
local function again(b, args, opts)
  local count = #b.asked
  local result = b.answered('deny', args, opts)
  return #b.asked > count and 'asked' or result
end

local function write(path) require('editor_project').write(path, 'x') end

before_each(function()
  config.reset()
  write(root .. '/in.txt')
  write(root .. '/other.txt')
  write(outside .. '/out.txt')
end)

after_each(function()
  config.reset()
  vim.fn.delete(base, 'rf')
end)

describe('an answer', function()
  it('applies to this call, this session, this project, or for ever', function()
    local YES, NO = 'ran', 'access_denied'
    for choice, want in pairs({
      once = { YES, 'asked', 'asked', 'asked' },
      session = { YES, YES, 'asked', 'asked' },
      always = { YES, YES, YES, YES },
      deny = { NO, 'asked', 'asked', 'asked' },
      never = { NO, NO, NO, NO },
    }) do
      vim.fn.delete(base .. '/state', 'rf')
      local b = setup()
      b.reply(choice)
      local got = { (b.run()) }
      local s1, s2 = { session = 's1' }, { session = 's2' }
      -- The last one is after a restart of the editor.
      vim.list_extend(got, { again(b, {}, s1), again(b, {}, s2), again(setup(), {}, s1) })
      t.eq({ choice, want }, { choice, got })
    end
  end)

  it('is one of the choices only where it has an effect', function()
    local b = setup()
    again(b)
    t.eq({ 'once', 'deny', 'session', 'always', 'never' }, b.asked[1].choices)
    again(b, {}, {})
    t.eq(b.asked[1].choices, b.asked[2].choices)
    config.setup({ approval = { tools = { x = 'ask' } } })
    b.run()
    t.eq({ 'once', 'deny', 'never' }, b.asked[3].choices)
    config.reset()
    b.run({}, { client = { name = 'mcp-tools' } }) -- the session of `mcp-tools call` ends with the call
    t.eq({ 'once', 'deny', 'always', 'never' }, b.asked[4].choices)
    write(base .. '/state/ledger/' .. vim.fn.sha256(root):sub(1, 32) .. '.json', 'nonsense')
    config.setup({ approval = { tools = { x = 'allow' } } })
    b.gateway.ledger.projects = {}
    b.run()
    t.eq({ 'once', 'deny' }, b.asked[5].choices)
    t.matches('damaged', b.asked[5].reason)
  end)

  it('that is not one of the choices denies', function()
    local b = setup()
    for _, choice in ipairs({ 'silence', 'nonsense', true }) do
      t.eq('access_denied', (b.answered(choice)))
    end
    b.user = function(_, answer)
      answer('session', nil, 'client') -- a client can grant nothing that outlives its session
    end
    t.eq({ 'access_denied', {} }, { (b.run({}, { session = nil })), b.ran })
  end)

  it('for one client does not apply to another', function()
    local b = setup()
    local _, first = b.run({ n = 1 })
    local answer_first = b.answer
    local _, second = b.run({ n = 2 }, { session = 's2' })
    b.answer('deny')
    answer_first('once')
    t.eq({ 'done', 'failed' }, { first.state, second.state })
    answer_first('always')
    b.answer('always')
    t.eq({ { { n = 1 } }, 'waiting_approval' }, { b.ran, (b.run()) })
  end)

  it('to a call that has ended has no effect', function()
    local b = setup()
    local _, call = b.run()
    call:cancel('client')
    b.answer('once')
    t.eq({}, b.ran)
  end)
end)

it('a call that is cancelled during the approval check asks no question', function()
  local b = setup()
  b.tool({
    name = 'waits',
    needs_approval = function(_, call) -- like one that waits for a language server
      vim.schedule(function() call:cancel('client') end)
      vim.wait(1000, function() return call:ended() end, 5)
      return true
    end,
  })
  t.eq({ 'cancelled', {}, {} }, { (b.run({}, { name = 'waits' })), b.asked, b.ran })
end)

describe('the call that the user sees', function()
  it('runs in the project that it came in, even if the user has changed directory', function()
    local b = setup()
    b.tool({ name = 'where', execute = function(ctx) ctx({ ctx.root, ctx.cwd, ctx.call.project }) end })
    local before = vim.uv.cwd()
    local _, call = b.run({}, { name = 'where' })
    b.root = outside
    vim.cmd.cd(outside)
    b.answer('once')
    vim.cmd.cd(before)
    t.eq({ root, before, root }, call.outcome.value)
  end)

  it('runs with the arguments that were shown, even if they were changed later', function()
    local b = setup()
    local mine = { path = 'in.txt', list = { 'a' } }
    local _, call = b.run(mine)
    t.eq({ path = 'in.txt', list = { 'a' } }, b.asked[1].args)
    mine.path, call.args.path, call.args.list[1], call.args.more = '/etc/passwd', '/etc/passwd', 'b', true
    b.answer('once')
    t.eq({ { path = 'in.txt', list = { 'a' } } }, b.ran)
  end)

  it('cannot be changed by a rule or a needs_approval', function()
    local b = setup()
    local function change(args)
      args.n, args.list[1] = 2, 'b'
    end
    local function rule(_, args) change(args) end
    local function needs_approval(args)
      change(args)
      return false
    end
    config.setup({ approval = { rule = rule } })
    b.tool({ needs_approval = needs_approval })
    b.run({ n = 1, list = { 'a' } })
    t.eq({ { n = 1, list = { 'a' } } }, b.ran)
  end)

  it('is denied when a link points elsewhere at the time of the answer', function()
    for _, target in ipairs({ outside .. '/out.txt', root .. '/other.txt' }) do
      local b = setup()
      vim.uv.fs_unlink(root .. '/link')
      vim.uv.fs_symlink(root .. '/in.txt', root .. '/link')
      local _, call = b.run({ path = root .. '/link' })
      vim.uv.fs_unlink(root .. '/link')
      vim.uv.fs_symlink(target, root .. '/link')
      b.answer('always')
      t.eq('failed', call.state)
      t.matches('changed its location', call.outcome.error.message)
      t.eq('waiting_approval', (b.run()))
    end
  end)

  it('is denied when its file has become sensitive at the time of the answer', function()
    local b = setup()
    vim.cmd.edit(root .. '/in.txt')
    local _, call = b.run({ bufnr = vim.api.nvim_get_current_buf() })
    vim.b.sensitive = true
    b.answer('once')
    t.matches('sensitive', call.outcome.error.message)
    vim.cmd('%bwipeout!')
  end)

  it('runs the definition that was shown, even if the name was registered again', function()
    local b = setup()
    b.run()
    b.tool({ execute = function() table.insert(b.ran, 'other') end })
    b.answer('once')
    t.eq({ {} }, b.ran)
  end)
end)

describe('trust', function()
  it('does not pass to another definition under the same name', function()
    local b = setup()
    b.answered('always')
    b.reply('session')
    b.tool({ name = 'y' })
    b.run({}, { name = 'y', session = 's1' })
    b.reply(nil)
    t.eq({ 'ran', 'ran' }, { (b.run()), (b.run({}, { name = 'y', session = 's1' })) })
    for _, name in ipairs({ 'x', 'y' }) do
      b.tool({ name = name, description = 'something else', annotations = { read_only = true } })
      t.eq('waiting_approval', (b.run({}, { name = name, session = 's1' })))
      t.matches('has changed since you trusted it', b.asked[#b.asked].reason)
    end
  end)

  it('covers only those files outside the project that were asked for', function()
    local b = setup()
    b.gateway:trust(b.registry:get('x'), 'trusted')
    t.eq('ran', (b.run({ path = root .. '/in.txt' })))
    t.eq('waiting_approval', (b.run({ path = outside .. '/out.txt' })))
    b.answer('always')
    t.eq('ran', (b.answered(nil, { path = outside .. '/out.txt' })))
    t.eq('ran', (b.run({ path = root .. '/in.txt' })))
    t.eq('waiting_approval', (b.run({ path = outside .. '/more.txt' })))
    t.eq('waiting_approval', (b.run({ paths = { outside .. '/out.txt', outside .. '/more.txt' } })))
    t.eq('access_denied', (b.run({ path = root .. '/.env' })))
  end)

  it('in a file is not trust in the tool', function()
    local b = setup()
    t.eq('ran', (b.answered('session', { path = outside .. '/out.txt' })))
    t.eq('ran', (b.answered(nil, { path = outside .. '/out.txt' })))
    t.eq('waiting_approval', (b.run({ path = root .. '/in.txt' })))
    t.eq('waiting_approval', (b.run({ path = outside .. '/out.txt' }, { session = 's2' })))
  end)

  it('is confirmed, and ends when the level is changed', function()
    local b = setup()
    for choice, text in pairs({ session = 'x is allowed in this session', always = 'x is always allowed here' }) do
      notifications.collect()
      b.answered(choice)
      notifications.wait(text .. '. Undo: :McpTools trust x untrusted')
      t.eq('ran', (b.run()))
      b.gateway:trust(b.registry:get('x'), 'untrusted')
      t.eq('asked', again(b))
    end
    notifications.collect()
    b.answered('always', { path = outside .. '/out.txt' })
    notifications.wait('x is always allowed with this file. Undo: :McpTools trust x untrusted')
    notifications.restore()
  end)

  it('has levels', function()
    local b = setup()
    b.tool({ name = 'demanding', needs_approval = true })
    b.tool({ name = 'reads', annotations = { read_only = true } })
    local function levels()
      local function level(name) return (b.gateway:level(b.registry:get(name))) end
      return vim.tbl_map(level, { 'x', 'demanding', 'reads' })
    end
    t.eq({ 'untrusted', 'untrusted', 'verified' }, levels())
    for _, name in ipairs({ 'x', 'demanding', 'reads' }) do
      b.gateway:trust(b.registry:get(name), 'verified')
    end
    t.eq({ { 'verified', 'untrusted', 'verified' }, 'ran' }, { levels(), (b.run()) })
    t.eq('waiting_approval', (b.run({}, { name = 'demanding' })))
    b.gateway:trust(b.registry:get('demanding'), 'trusted')
    t.eq('ran', (b.run({}, { name = 'demanding' })))
    b.gateway:trust(b.registry:get('reads'), 'denied')
    t.eq({ 'verified', 'trusted', 'denied' }, levels())
    t.eq('access_denied', (b.run({}, { name = 'reads' })))
    b.gateway:trust(b.registry:get('reads'), 'untrusted')
    t.eq('verified', (b.gateway:level(b.registry:get('reads'))))
  end)

  it('has levels that call no function of a mounted server', function()
    local b, called = setup(), 0
    b.tool({ needs_approval = function() called = called + 1 end }, { origin = 'mounted', name = 'm' })
    b.gateway:trust(b.registry:get('x'), 'verified')
    t.eq({ 'untrusted', 'it depends on its arguments' }, { b.gateway:level(b.registry:get('x')) })
    t.eq({ 0, 'ran', 1 }, { called, (b.run()), called })
  end)

  it('does not follow from what the project or another server says about its own tools', function()
    local b = setup()
    local own = { origin = 'registered', file = root .. '/tools.lua' }
    for _, source in ipairs({ own, { origin = 'mounted', name = 'm' } }) do
      b.tool({ annotations = { read_only = true } }, vim.deepcopy(source))
      t.eq('waiting_approval', (b.run()))
      b.tool({ needs_approval = function() error('it was called') end }, vim.deepcopy(source))
      t.eq('waiting_approval', (b.run()))
      config.setup({ approval = { default = 'allow' } })
      b.tool({ needs_approval = 'it costs money' }, vim.deepcopy(source))
      t.eq('waiting_approval', (b.run()))
      b.tool({ annotations = { destructive = true } }, vim.deepcopy(source))
      t.eq('waiting_approval', (b.run()))
      config.reset()
      b.gateway:trust(b.registry:get('x'), 'trusted')
      t.eq('ran', (b.run()))
    end
  end)

  it('in a tool does not extend to the tools that it calls', function()
    local b = setup()
    b.tool({
      name = 'outer',
      annotations = { read_only = true },
      execute = function(ctx) ctx(b.executor:execute('x', {}, { host = 'nvim' }).state) end,
    })
    t.eq({ 'waiting_approval', {} }, { (b.run({}, { name = 'outer', session = 's1' })), b.ran })
  end)
end)

describe('"always" for a tool that runs what its arguments contain', function()
  local function shell()
    local b = setup()
    b.tool({ always_ignores = { 'timeout_ms' } })
    return b
  end

  it('allows the same command and no other', function()
    local b = shell()
    t.eq('ran', (b.answered('always', { command = 'echo hi', timeout_ms = 5 })))
    t.eq('ran', again(b, { command = 'echo hi', timeout_ms = 7 }))
    t.eq('ran', again(shell(), { command = 'echo hi' })) -- as after a restart of the editor
    for _, other in ipairs({ 'echo hi; rm -rf .', 'echo', 'echo hi ', 'echo  hi' }) do
      t.eq('asked', again(b, { command = other }))
    end
    t.eq('asked', again(b, { command = 'echo hi', cwd = root }))
    b.answered('always', { command = 'make' })
    t.eq({ 'ran', 'ran' }, { again(b, { command = 'make' }), again(b, { command = 'echo hi' }) })
  end)

  it('does not allow other commands in a directory outside the project', function()
    local b = shell()
    t.eq('ran', (b.answered('always', { command = 'ls', cwd = outside })))
    t.eq('ran', again(b, { command = 'ls', cwd = outside }))
    t.eq('asked', again(b, { command = 'rm -rf .', cwd = outside }))
  end)

  it('does not raise the level of the tool', function()
    local b = shell()
    local before = b.gateway:level(b.registry:find_tool('x'))
    t.eq({ 'ran', before }, { (b.answered('always', {})), (b.gateway:level(b.registry:find_tool('x'))) })
  end)

  it('is not a choice for a call that is too long to store', function()
    local b = shell()
    again(b, { command = ('x'):rep(10000) })
    t.ok(not vim.list_contains(b.asked[1].choices, 'always'))
    local definition = { always_ignores = {} }
    local key, never = require('mcp-tools.approval.rules').call_key(definition, { command = ('\1'):rep(1e6) })
    t.eq({ true, true }, { never, #key < 5000 }) -- only as much as is compared
    for length, expected in pairs({ [4082] = false, [4083] = true }) do -- and `{"command":""}`
      key, never = require('mcp-tools.approval.rules').call_key(definition, { command = ('x'):rep(length) })
      t.eq({ expected, math.min(14 + length, 4097) }, { never, #key })
    end
  end)

  it('is not a choice for an argument that means something else later', function()
    for _, case in ipairs({
      { 'shell.jobs', { action = 'stop', id = 'job1' } },
      { 'test.run', { run = 'run1' } },
      { 'test.run', { at_cursor = true } },
      { 'test.run', { last_failed = true } },
      { 'test.run', { bufnr = 0 } },
      { 'debug.step', { how = 'continue', session_id = 1 } },
      { 'debug.inspect', { expressions = { 'x' }, thread_id = 1 } },
    }) do
      local b, tool = setup(), require('mcp-tools.tools.' .. case[1])
      b.tool({ always_ignores = tool.always_ignores, short_lived = tool.short_lived })
      again(b, case[2])
      t.ok(not vim.list_contains(b.asked[1].choices, 'always'), vim.inspect(case))
      t.ok(vim.list_contains(b.asked[1].choices, 'session'), vim.inspect(case))
    end
  end)

  it('compares all arguments of bundled tools except limits', function()
    local harmless = { 'timeout_ms', 'wait_ms', 'max_bytes', 'limit', 'offset', 'since', 'output' }
    local names = 'shell.run shell.jobs editor.eval_lua editor.command plugin.call test.run'
      .. ' debug.run debug.step debug.inspect'
    for name in names:gmatch('%S+') do
      local definition = require('mcp-tools.tools.' .. name)
      for _, argument in ipairs(definition.always_ignores) do
        t.ok(definition.args[argument], name .. ' ' .. argument)
        t.ok(vim.list_contains(harmless, argument), name .. ' ' .. argument)
      end
      for _, argument in ipairs(definition.short_lived or {}) do
        t.ok(definition.args[argument], name .. ' ' .. argument)
      end
    end
  end)

  it('allows the tests and the place of the call, and no others', function()
    for name, calls in pairs({
      ['test.run'] = { { path = 'a' }, { path = 'b' }, { path = 'a', line = 3 }, {}, { last_failed = true } },
      ['debug.step'] = { { how = 'to_line', path = 'a', line = 1 }, { how = 'to_line', path = 'a', line = 2 } },
      ['debug.inspect'] = { { expressions = { 'x' }, frame = 0 }, { expressions = { 'x' }, frame = 1 } },
      ['debug.run'] = { { program = 'a' }, { program = 'a', exceptions = true } },
    }) do
      local b, tool = setup(), require('mcp-tools.tools.' .. name)
      b.tool({ always_ignores = tool.always_ignores, short_lived = tool.short_lived })
      t.eq('ran', (b.answered('always', calls[1])))
      local longer = vim.tbl_extend('error', calls[1], { [tool.always_ignores[1]] = 7 })
      t.eq({ 'ran', 'ran' }, { again(b, calls[1]), again(b, longer) })
      for i = 2, #calls do
        t.eq('asked', again(b, calls[i]), name .. ' ' .. vim.inspect(calls[i]))
      end
    end
  end)

  it('allows breakpoints without an expression, but none with an expression', function()
    local b = setup()
    b.tool({ always_ignores = require('mcp-tools.tools.debug.breakpoints').always_ignores })
    t.eq('ran', (b.answered('always', { set = { { line = 1 } } })))
    t.eq('ran', again(b, { set = { { line = 2 } } }))
    for _, name in ipairs({ 'condition', 'hit_condition', 'log_message' }) do
      t.eq('asked', again(b, { set = { { line = 1 }, { line = 1, [name] = 'run()' } } }))
    end
  end)

  it('does not allow a test by its id, whose file may be outside the project', function()
    for name, args in pairs({
      ['test.run'] = { tests = { outside .. '/test_x.py::test_x' } },
      ['debug.run'] = { test = outside .. '/test_x.py::test_x' },
    }) do
      local b = setup()
      b.tool({ always_ignores = require('mcp-tools.tools.' .. name).always_ignores })
      t.eq({ 'ran', 'ran', 'asked' }, { (b.answered('always', {})), again(b, {}), (again(b, args)) })
    end
  end)
end)

it('without a session id, a grant for the session applies to clients of the same name', function()
  local b = setup()
  b.reply('session')
  local function run(name)
    local call = b.executor:execute('x', {}, { host = 'mcp', client = { name = name } })
    return call.outcome.error and call.outcome.error.code or call.outcome.value
  end
  t.eq('ran', run('claude-code'))
  b.reply('deny')
  t.eq({ 'ran', 'access_denied' }, { run('claude-code'), run('other') })
end)

describe('a denial', function()
  it('passes the reason that the user typed to the client', function()
    local b = setup()
    b.user = function(_, answer) answer('deny', nil, nil, 'rounding hides bugs') end
    local _, call = b.run()
    t.matches('said no: "rounding hides bugs"', call.outcome.error.message)
  end)

  local function message_of(b, args)
    local _, call = b.run(args)
    return call.outcome.error.message
  end

  it('tells the client what it can do, and not how to disable the check', function()
    local b = setup()
    local messages = { message_of(b, { path = root .. '/.env' }) }
    t.matches('%.env is sensitive. No tool can access it', messages[1])
    config.setup({ approval = { tools = { x = 'deny' } } })
    table.insert(messages, message_of(b))
    t.matches('configuration denies it. Continue without it', messages[#messages])
    config.reset()
    b.reply('deny')
    table.insert(messages, message_of(b))
    t.matches('said no. Do not try it again unless the user tells you to', messages[#messages])
    b.reply('never')
    table.insert(messages, message_of(b))
    table.insert(messages, message_of(b))
    t.matches('always denies it. Continue without it', messages[#messages])
    for _, message in ipairs(messages) do
      for _, word in ipairs({ 'setup', 'approval%.', 'option', '"allow"', ':McpTools' }) do
        t.ok(not message:find(word), message)
      end
    end
  end)
end)

it('after several denials in a row the user can deny all further questions of that session', function()
  local b = setup()
  b.answered('deny')
  b.run()
  b.answered('once')
  b.reply('deny')
  for _ = 1, 3 do
    b.run()
    t.ok(not vim.list_contains(b.asked[#b.asked].choices, 'silence'))
  end
  t.eq('access_denied', (b.answered('silence')))
  local count = #b.asked
  local result, call = b.run()
  t.eq({ 'access_denied', count }, { result, #b.asked })
  t.matches('denied all further questions', call.outcome.error.message)
  t.eq('user: silence', call.decision.by)
  b.reply(nil)
  b.gateway.grants:unsilence()
  t.eq('waiting_approval', (b.run()))
  t.ok(not vim.list_contains(b.asked[#b.asked].choices, 'silence'))
  t.eq('waiting_approval', (b.run({}, { session = 's2' })))
  b.tool({ annotations = { read_only = true } })
  t.eq('ran', (b.run()))
end)

describe('an internal failure', function()
  it('denies the call', function()
    local b = setup()
    b.user = function() error('no window') end
    t.eq('access_denied', (b.run()))
    b.reply(nil)
    b.gateway.ledger.verdict = function() error('no ledger') end
    b.tool({ annotations = { read_only = true } })
    t.eq({ 'access_denied', {} }, { (b.run()), b.ran })
  end)

  it('asks when earlier decisions cannot be read, whatever the rules are', function()
    local b = setup()
    b.gateway:trust(b.registry:get('x'), 'trusted')
    vim.uv.fs_chmod(base .. '/state/ledger', tonumber('777', 8))
    b.gateway.ledger.projects = {}
    config.setup({ approval = { tools = { x = 'allow' } } })
    t.eq('waiting_approval', (b.run()))
    config.setup({ approval = { tools = { x = 'deny' } } })
    t.eq('access_denied', (b.run()))
  end)
end)

describe('files', function()
  local function verdict(args)
    local call = Call.new({ id = 'x', name = 'x', host = 'test' })
    call.definition = { name = 'x', description = 'x', annotations = { read_only = true } }
    call.args = args
    local decision = setup().gateway:judge(call)
    return decision.action
  end

  it('outside the project are found in every notation and argument', function()
    vim.uv.fs_symlink(outside .. '/new.txt', root .. '/dangling')
    vim.uv.fs_symlink('../outside/new.txt', root .. '/relative')
    vim.uv.fs_symlink('relative', root .. '/twice')
    vim.uv.fs_symlink(outside, root .. '/directory')
    vim.env.MCPT_OUTSIDE = outside
    for _, path in ipairs({
      root .. '/dangling',
      root .. '/relative',
      root .. '/twice',
      root .. '/directory/../../outside/out.txt',
      root .. '/directory/new.txt',
      root .. '/none/../../outside/out.txt',
      root .. '-other',
      root .. '/in.txt/../../outside/out.txt',
      'file://' .. root .. '/%2e%2e/outside/out.txt',
      'FILE://localhost' .. outside .. '/out.txt',
      'x://../../../../../../../../../../etc/passwd',
      '~/x',
      '~',
      '~root/x',
      '$MCPT_OUTSIDE/out.txt',
      root .. '/${MCPT_OUTSIDE}',
      root .. '/`id`',
      root:upper() .. '/in.txt',
      '/proc/self/root' .. outside .. '/out.txt',
      '//' .. outside,
    }) do
      t.eq({ path, 'ask' }, { path, verdict({ path = path }) })
    end
    vim.env.MCPT_OUTSIDE = nil
    t.eq('allow', verdict({ path = root .. '/routes/$id.tsx' }))
    t.eq('allow', verdict({ path = root .. '/new/file.txt' }))
    t.eq('ask', verdict({ edits = { { text = '' }, { path = outside .. '/out.txt' } } }))
    t.eq('ask', verdict({ uri = 'file://' .. outside .. '/out.txt' }))
    t.eq('allow', verdict({ uri = 'nvim://buffers' }))
    t.eq('ask', verdict({ paths = { { root .. '/in.txt', { outside .. '/out.txt' } } } }))
    for _, key in ipairs({ 'filePath', 'FILE_PATH', 'file-name', 'newPath', 'Path', 'workingDirectory' }) do
      t.eq({ key, 'ask' }, { key, verdict({ [key] = outside .. '/out.txt' }) })
    end
    t.eq('allow', verdict({ profile = '/x', pathology = '/x', xpath = '/html' }))
  end)

  it('are found in each form of a file URI; ambiguous forms ask', function()
    for uri, expected in pairs({
      ['file:' .. outside .. '/out.txt'] = 'ask',
      ['file:/' .. root .. '/../outside/out.txt'] = 'ask',
      ['file:' .. root .. '/in.txt'] = 'allow',
      ['file://localhost' .. root .. '/in.txt'] = 'allow',
      ['file://' .. root .. '/%69n.txt'] = 'allow',
      ['file://etc' .. root .. '/in.txt'] = 'ask',
      ['file://' .. root .. '/in.txt#L1'] = 'ask',
      ['file://' .. root .. '/.env#L1'] = 'deny',
      ['file:' .. root .. '/.env?x'] = 'deny',
      ['file:' .. root .. '/%2eenv'] = 'deny',
    }) do
      t.eq({ uri, expected, uri, expected }, { uri, verdict({ uri = uri }), uri, (verdict({ path = uri })) })
    end
  end)

  it('with a wildcard that a tool might expand ask, unless a file has that name', function()
    for _, name in ipairs({ '.en?', '.e*', '.en[v]', '{x,../outside/out.txt}', '[id]/x.txt' }) do
      t.eq({ name, 'ask' }, { name, verdict({ path = root .. '/' .. name }) })
    end
    for _, name in ipairs({ '%', '#1', '<cfile>' }) do
      t.eq({ name, 'ask' }, { name, verdict({ path = name }) })
    end
    write(root .. '/[id]/in.txt')
    t.eq('allow', verdict({ path = root .. '/[id]/in.txt' }))
    t.eq('allow', verdict({ path = root .. '/[id]/new.txt' }))
    t.eq('ask', verdict({ path = root .. '/[id]/{new,../../outside/out}.txt' }))
  end)

  it('that cannot be judged are denied', function()
    vim.uv.fs_symlink('b', root .. '/a')
    vim.uv.fs_symlink('a', root .. '/b')
    for _, path in ipairs({ root .. '/a', root .. '/a/x', root .. '/in.txt\0', 'file://' .. root .. '/in%00.txt' }) do
      t.eq({ path, 'deny' }, { path, verdict({ path = path }) })
    end
  end)
end)
