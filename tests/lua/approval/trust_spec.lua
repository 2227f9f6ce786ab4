local Call = require('mcp-tools.calls.call')
local Executor = require('mcp-tools.calls.executor')
local Gateway = require('mcp-tools.approval.gateway')
local Ledger = require('mcp-tools.approval.ledger')
local Registry = require('mcp-tools.registry.store')
local config = require('mcp-tools.config')
local sensitive = require('mcp-tools.privacy.sensitive')
local t = require('helpers')

local base = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/trust-spec'
local root, outside = base .. '/project', base .. '/outside'

--- A gateway, registry and executor of this test's own, and the person's answers in order.
local function bench()
  local b = { asked = {}, ran = {}, root = root }
  local function root_now() return b.root end
  b.registry = Registry.new()
  b.gateway = Gateway.new({
    ask = function(asked, answer)
      asked.call:move('ask')
      table.insert(b.asked, asked)
      b.answer = answer
      if b.person then
        b.person(asked, answer)
      end
    end,
    root = root_now,
    ledger = Ledger.new({
      dir = function() return base .. '/state' end,
    }),
  })
  b.executor = Executor.new({
    registry = b.registry,
    gateway = b.gateway,
    root = root_now,
    settings = function() return { tool_timeout = 5000, max_calls = 100, max_result = 10000, result_ttl = 1000 } end,
  })
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
      client = { name = 'c' },
    })
    return call.outcome and (call.outcome.error and call.outcome.error.code or call.outcome.value) or call.state, call
  end
  function b.says(choice)
    b.person = choice and function(_, answer) answer(choice) end or nil
  end
  b.tool()
  return b
end

local function write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  vim.fn.writefile({ text or 'x' }, path)
end

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
  it('counts for this call, this session, this project, or never again', function()
    local YES, NO = 'ran', 'access_denied'
    for choice, want in pairs({
      once = { YES, 'asked', 'asked', 'asked' },
      session = { YES, YES, 'asked', 'asked' },
      always = { YES, YES, YES, YES },
      deny = { NO, 'asked', 'asked', 'asked' },
      never = { NO, NO, NO, NO },
    }) do
      vim.fn.delete(base .. '/state', 'rf')
      local b = bench()
      b.says(choice)
      local got = { (b.run()) }
      b.person = function(_, answer)
        b.was_asked = true
        answer('deny')
      end
      local function again(bench_now, session)
        b.was_asked, bench_now.person = false, b.person
        local result = bench_now.run({}, { session = session })
        return b.was_asked and 'asked' or result
      end
      table.insert(got, again(b, 's1'))
      table.insert(got, again(b, 's2'))
      table.insert(got, again(bench(), 's1')) -- the editor was started anew
      t.eq({ choice, want }, { choice, got })
    end
  end)

  it('is offered as far as it has an effect', function()
    local b = bench()
    b.says('deny')
    b.run()
    t.eq({ 'once', 'deny', 'session', 'always', 'never' }, b.asked[1].choices)
    b.run({}, { session = nil })
    t.eq({ 'once', 'deny', 'session', 'always', 'never' }, b.asked[2].choices)
    config.setup({ approval = { tools = { x = 'ask' } } })
    b.run()
    t.eq({ 'once', 'deny', 'never' }, b.asked[3].choices)
    write(base .. '/state/ledger/' .. vim.fn.sha256(root):sub(1, 32) .. '.json', 'nonsense')
    config.setup({ approval = { tools = { x = 'allow' } } })
    b.gateway.ledger.projects = {}
    b.run()
    t.eq({ 'once', 'deny' }, b.asked[4].choices)
    t.matches('damaged', b.asked[4].reason)
  end)

  it('that was not offered denies', function()
    local b = bench()
    for _, choice in ipairs({ 'silence', 'nonsense', true }) do
      b.says(choice)
      t.eq('access_denied', (b.run()))
    end
    b.person = function(_, answer)
      answer('session', nil, 'client') -- a client can grant nothing that outlives its session
    end
    t.eq('access_denied', (b.run({}, { session = nil })))
    t.eq({}, b.ran)
  end)

  it('of one client says nothing of the other', function()
    local b = bench()
    local _, first = b.run({ n = 1 })
    local answer_first = b.answer
    local _, second = b.run({ n = 2 }, { session = 's2' })
    b.answer('deny')
    answer_first('once')
    t.eq({ 'done', 'failed' }, { first.state, second.state })
    answer_first('always')
    b.answer('always')
    t.eq({ { n = 1 } }, b.ran)
    t.eq('waiting_approval', (b.run()))
  end)

  it('to a call that has ended runs nothing', function()
    local b = bench()
    local _, call = b.run()
    call:cancel('client')
    b.answer('once')
    t.eq({}, b.ran)
  end)
end)

it('a call that is cancelled while it is judged is not asked for', function()
  local b = bench()
  b.tool({
    name = 'waits',
    needs_approval = function(_, call) -- like one that waits for a language server
      vim.schedule(function() call:cancel('client') end)
      vim.wait(1000, function() return call:ended() end, 5)
      return true
    end,
  })
  t.eq('cancelled', (b.run({}, { name = 'waits' })))
  t.eq({ {}, {} }, { b.asked, b.ran })
end)

describe('what was shown', function()
  it('is for the project that the call came in, wherever the person has gone meanwhile', function()
    local b = bench()
    b.tool({
      name = 'where',
      execute = function(ctx) ctx({ ctx.root, ctx.cwd, ctx.call.project }) end,
    })
    local before = vim.uv.cwd()
    local _, call = b.run({}, { name = 'where' })
    b.root = outside
    vim.cmd.cd(outside)
    b.answer('once')
    vim.cmd.cd(before)
    t.eq({ root, before, root }, call.outcome.value)
  end)

  it('is what runs, whoever has changed the arguments meanwhile', function()
    local b = bench()
    local mine = { path = 'in.txt', list = { 'a' } }
    local _, call = b.run(mine)
    t.eq({ path = 'in.txt', list = { 'a' } }, b.asked[1].args)
    mine.path, call.args.path, call.args.list[1], call.args.more = '/etc/passwd', '/etc/passwd', 'b', true
    b.answer('once')
    t.eq({ { path = 'in.txt', list = { 'a' } } }, b.ran)
  end)

  it('cannot be changed by a rule or a needs_approval', function()
    local b = bench()
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

  it('is looked at again when the yes has come: a link that was moved denies', function()
    for target, word in pairs({
      [outside .. '/out.txt'] = 'changed its location',
      [root .. '/other.txt'] = 'changed its location',
    }) do
      local b = bench()
      vim.uv.fs_unlink(root .. '/link')
      vim.uv.fs_symlink(root .. '/in.txt', root .. '/link')
      local _, call = b.run({ path = root .. '/link' })
      vim.uv.fs_unlink(root .. '/link')
      vim.uv.fs_symlink(target, root .. '/link')
      b.answer('always')
      t.eq('failed', call.state)
      t.matches(word, call.outcome.error.message)
      t.eq('waiting_approval', (b.run()))
    end
  end)

  it('is looked at again when the yes has come: a file that became sensitive denies', function()
    local b = bench()
    vim.cmd.edit(root .. '/in.txt')
    local _, call = b.run({ bufnr = vim.api.nvim_get_current_buf() })
    vim.b.sensitive = true
    b.answer('once')
    t.matches('sensitive', call.outcome.error.message)
    vim.cmd('%bwipeout!')
  end)

  it('runs in the definition that was shown, when the name was registered anew meanwhile', function()
    local b = bench()
    b.run()
    b.tool({
      execute = function(ctx)
        table.insert(b.ran, 'other')
        ctx('other')
      end,
    })
    b.answer('once')
    t.eq({ {} }, b.ran)
  end)
end)

describe('trust', function()
  it('does not pass to another definition under the same name', function()
    local b = bench()
    b.says('always')
    b.run()
    b.says('session')
    b.tool({ name = 'y' })
    b.run({}, { name = 'y', session = 's1' })
    b.says(nil)
    t.eq('ran', (b.run()))
    t.eq('ran', (b.run({}, { name = 'y', session = 's1' })))
    for _, name in ipairs({ 'x', 'y' }) do
      b.tool({ name = name, description = 'something else', annotations = { read_only = true } })
      t.eq('waiting_approval', (b.run({}, { name = name, session = 's1' })))
      t.matches('has changed since you trusted it', b.asked[#b.asked].reason)
    end
  end)

  it('reaches no file outside the project but those that were asked for', function()
    local b = bench()
    b.gateway:trust(b.registry:get('x'), 'trusted')
    t.eq('ran', (b.run({ path = root .. '/in.txt' })))
    t.eq('waiting_approval', (b.run({ path = outside .. '/out.txt' })))
    b.answer('always')
    b.says(nil)
    t.eq('ran', (b.run({ path = outside .. '/out.txt' })))
    t.eq('ran', (b.run({ path = root .. '/in.txt' })))
    t.eq('waiting_approval', (b.run({ path = outside .. '/more.txt' })))
    t.eq('waiting_approval', (b.run({ paths = { outside .. '/out.txt', outside .. '/more.txt' } })))
    t.eq('access_denied', (b.run({ path = root .. '/.env' })))
  end)

  it('of a file is not trust in the tool', function()
    local b = bench()
    b.says('session')
    t.eq('ran', (b.run({ path = outside .. '/out.txt' })))
    b.says(nil)
    t.eq('ran', (b.run({ path = outside .. '/out.txt' })))
    t.eq('waiting_approval', (b.run({ path = root .. '/in.txt' })))
    t.eq('waiting_approval', (b.run({ path = outside .. '/out.txt' }, { session = 's2' })))
  end)

  it('has levels', function()
    local b = bench()
    b.tool({ name = 'demanding', needs_approval = true })
    b.tool({ name = 'reads', annotations = { read_only = true } })
    local function levels()
      return vim.tbl_map(
        function(name) return (b.gateway:level(b.registry:get(name))) end,
        { 'x', 'demanding', 'reads' }
      )
    end
    t.eq({ 'untrusted', 'untrusted', 'verified' }, levels())
    for _, name in ipairs({ 'x', 'demanding', 'reads' }) do
      b.gateway:trust(b.registry:get(name), 'verified')
    end
    t.eq({ 'verified', 'untrusted', 'verified' }, levels())
    t.eq('ran', (b.run()))
    t.eq('waiting_approval', (b.run({}, { name = 'demanding' })))
    b.gateway:trust(b.registry:get('demanding'), 'trusted')
    t.eq('ran', (b.run({}, { name = 'demanding' })))
    b.gateway:trust(b.registry:get('reads'), 'denied')
    t.eq({ 'verified', 'trusted', 'denied' }, levels())
    t.eq('access_denied', (b.run({}, { name = 'reads' })))
    b.gateway:trust(b.registry:get('reads'), 'untrusted')
    t.eq('verified', (b.gateway:level(b.registry:get('reads'))))
  end)

  it('has levels that call nothing of a stranger', function()
    local b, called = bench(), 0
    b.tool({
      needs_approval = function() called = called + 1 end,
    }, { origin = 'mounted', name = 'm' })
    b.gateway:trust(b.registry:get('x'), 'verified')
    t.eq({ 'untrusted', 'it depends on its arguments' }, { b.gateway:level(b.registry:get('x')) })
    t.eq(0, called)
    t.eq('ran', (b.run()))
    t.eq(1, called)
  end)

  it('is not given to what the project or another server says of itself', function()
    local b = bench()
    local own = { origin = 'registered', file = root .. '/tools.lua' }
    for _, source in ipairs({ own, { origin = 'mounted', name = 'm' } }) do
      b.tool({ annotations = { read_only = true } }, vim.deepcopy(source))
      t.eq('waiting_approval', (b.run()))
      b.tool({
        needs_approval = function() error('it was called') end,
      }, vim.deepcopy(source))
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

  it('in a tool is not trust in the tools that it calls', function()
    local b = bench()
    b.tool({
      name = 'outer',
      annotations = { read_only = true },
      execute = function(ctx)
        local inner = b.executor:execute('x', {}, { host = 'nvim' })
        ctx(inner.state)
      end,
    })
    t.eq('waiting_approval', (b.run({}, { name = 'outer', session = 's1' })))
    t.eq({}, b.ran)
  end)
end)

describe('a question that nobody answered', function()
  local function nobody(_, answer) answer(nil, { code = 'access_denied', message = 'nobody' }, 'timeout') end

  it('can be granted for the next try of the same call, once, whichever session makes it', function()
    local b = bench()
    b.person = nobody
    t.eq('access_denied', (b.run({ n = 1 })))
    b.says(nil)
    t.eq(1, #b.gateway.grants.unanswered)
    b.gateway.grants.unanswered[1].granted = true
    t.eq('waiting_approval', (b.run({ n = 2 })))
    b.root = outside -- a grant is for the project that was asked in
    t.eq('waiting_approval', (b.run({ n = 1 })))
    b.answer('once')
    b.root = root
    t.eq('ran', (b.run({ n = 1 }, { session = 's2' })))
    t.eq('waiting_approval', (b.run({ n = 1 })))
    t.eq({}, b.gateway.grants.unanswered)
  end)

  it('tells the person the line that would let the tool run, where one would', function()
    local b = bench()
    b.person = nobody
    local function remedy()
      b.gateway.grants:reset()
      b.run({ n = 1 })
      return b.gateway.grants.unanswered[1].remedy
    end
    local function obey(line)
      assert(loadstring(line))()
      local result = b.run({ n = 1 })
      config.reset()
      return result
    end
    t.eq('ran', obey(remedy()))
    config.setup({ approval = { tools = { x = 'ask' } } })
    t.eq('ran', obey(remedy()))
    local function rule() return 'ask' end
    config.setup({ approval = { rule = rule } })
    t.eq(nil, remedy())
  end)

  it('can be granted as far as it could have been answered', function()
    local b = bench()
    b.person = nobody
    b.run({ path = outside .. '/out.txt' })
    config.setup({ approval = { tools = { x = 'ask' } } })
    b.run({ n = 1 })
    local first, second = unpack(b.gateway.grants.unanswered)
    t.eq({ outside .. '/out.txt' }, first.files)
    t.ok(vim.list_contains(first.choices, 'always'))
    t.eq(nil, second.files)
    t.ok(not vim.list_contains(second.choices, 'always'))
  end)

  it('is kept for a while, not for ever', function()
    local b = bench()
    b.person = nobody
    for i = 1, 30 do
      b.run({ n = i })
      b.run({ n = i })
    end
    t.eq(20, #b.gateway.grants.unanswered)
  end)
end)

describe('"always" for a tool that runs what its arguments say', function()
  local function shell()
    local b = bench()
    b.tool({ always_for = { 'command', 'cwd' } })
    return b
  end

  it('allows the same command, and no other one', function()
    local b = shell()
    b.says('always')
    t.eq('ran', (b.run({ command = 'echo hi', timeout_ms = 5 })))
    b.says('deny')
    local function asked(args)
      local before = #b.asked
      b.run(args)
      return #b.asked > before
    end
    t.ok(not asked({ command = 'echo hi', timeout_ms = 7 }))
    t.eq('ran', (shell().run({ command = 'echo hi' }))) -- as after a restart of the editor
    for _, other in ipairs({ 'echo hi; rm -rf .', 'echo', 'echo hi ', 'echo  hi' }) do
      t.ok(asked({ command = other }), other)
    end
    t.ok(asked({ command = 'echo hi', cwd = root }))
    b.says('always')
    b.run({ command = 'make' })
    b.says('deny')
    t.ok(not asked({ command = 'make' }))
    t.ok(not asked({ command = 'echo hi' }))
  end)

  it('does not allow other commands in a directory outside the project', function()
    local b = shell()
    b.says('always')
    t.eq('ran', (b.run({ command = 'ls', cwd = outside })))
    b.says('deny')
    t.eq('ran', (b.run({ command = 'ls', cwd = outside })))
    t.eq('access_denied', (b.run({ command = 'rm -rf .', cwd = outside })))
  end)

  it('does not raise the level of the tool', function()
    local b = shell()
    local before = b.gateway:level(b.registry:find_tool('x'))
    b.says('always')
    t.eq('ran', (b.run({})))
    t.eq(before, (b.gateway:level(b.registry:find_tool('x'))))
  end)

  it('is not offered for a call that is too long to be kept', function()
    local b = shell()
    b.says('deny')
    b.run({ command = ('x'):rep(10000) })
    t.ok(not vim.list_contains(b.asked[1].choices, 'always'))
  end)

  it('is not offered for an id, which is another one in the next editor', function()
    for name, args in pairs({ ['shell.jobs'] = { action = 'stop', id = 'job1' }, ['test.run'] = { run = 'run1' } }) do
      local b, tool = bench(), require('mcp-tools.tools.' .. name)
      b.tool({ always_for = tool.always_for, short_lived = tool.short_lived })
      b.says('deny')
      b.run(args)
      t.ok(not vim.list_contains(b.asked[1].choices, 'always'), name)
      t.ok(vim.list_contains(b.asked[1].choices, 'session'), name)
    end
  end)

  it('is set by every bundled tool that runs what its arguments say', function()
    local names = 'shell.run shell.jobs editor.eval_lua editor.command plugin.call test.run'
      .. ' debug.run debug.step debug.inspect'
    for name in names:gmatch('%S+') do
      local definition = require('mcp-tools.tools.' .. name)
      t.ok(#definition.always_for > 0, name)
      for _, argument in ipairs(vim.list_extend({ unpack(definition.always_for) }, definition.short_lived or {})) do
        t.ok(definition.args[argument], name .. ' ' .. argument)
      end
    end
  end)

  it('allows breakpoints without an expression, and none that the program evaluates', function()
    local b = bench()
    b.tool({ always_for = require('mcp-tools.tools.debug.breakpoints').always_for })
    b.says('always')
    t.eq('ran', (b.run({ set = { { line = 1 } } })))
    b.says('deny')
    t.eq('ran', (b.run({ set = { { line = 2 } } })))
    for _, name in ipairs({ 'condition', 'hit_condition', 'log_message' }) do
      t.eq('access_denied', (b.run({ set = { { line = 1 }, { line = 1, [name] = 'run()' } } })))
    end
  end)

  it('does not allow a test by an id, which may be of a file outside the project', function()
    for name, args in pairs({
      ['test.run'] = { tests = { outside .. '/test_x.py::test_x' } },
      ['debug.run'] = { test = outside .. '/test_x.py::test_x' },
    }) do
      local b = bench()
      b.tool({ always_for = require('mcp-tools.tools.' .. name).always_for })
      b.says('always')
      t.eq('ran', (b.run({})))
      b.says('deny')
      t.eq('ran', (b.run({})))
      t.eq('access_denied', (b.run(args)))
    end
  end)
end)

it('a grant for a session is for clients of the same name where the connection has no session', function()
  local b = bench()
  b.says('session')
  local function run(name)
    local call = b.executor:execute('x', {}, { host = 'mcp', client = { name = name } })
    return call.outcome.error and call.outcome.error.code or call.outcome.value
  end
  t.eq('ran', run('claude-code'))
  b.says('deny')
  t.eq({ 'ran', 'access_denied' }, { run('claude-code'), run('other') })
end)

describe('a denial', function()
  it('tells the client the reason that the user typed', function()
    local b = bench()
    b.person = function(_, answer) answer('deny', nil, nil, 'rounding hides bugs') end
    local _, call = b.run()
    t.matches('said no: "rounding hides bugs"', call.outcome.error.message)
  end)

  local function message_of(b, args)
    local _, call = b.run(args)
    return call.outcome.error.message
  end

  it('tells the client what it can do, and nothing that takes the guard away', function()
    local b = bench()
    local messages = { message_of(b, { path = root .. '/.env' }) }
    t.matches('%.env is sensitive. No tool can access it', messages[1])
    config.setup({ approval = { tools = { x = 'deny' } } })
    table.insert(messages, message_of(b))
    t.matches('configuration denies it. Continue without it', messages[#messages])
    config.reset()
    b.says('deny')
    table.insert(messages, message_of(b))
    t.matches('said no. Do not try it again unless the user tells you to', messages[#messages])
    b.says('never')
    table.insert(messages, message_of(b))
    table.insert(messages, message_of(b))
    t.matches('always denies it. Continue without it', messages[#messages])
    for _, message in ipairs(messages) do
      for _, word in ipairs({ 'setup', 'approval%.', 'option', '"allow"', ':McpTools' }) do
        t.ok(not message:find(word), message)
      end
    end
  end)

  it('names a tool so that its name ends nowhere else than it should', function()
    local answers = require('mcp-tools.approval.answers')
    for _, name in ipairs({ 'plain', 'a"] = "allow', 'end', 'a\\', 'a\n\27é', '1st', 'with space', ']]' }) do
      local line = answers.remedy(name, { action = 'ask', by = 'annotations' })
      config.reset()
      assert(loadstring(line), line)()
      t.eq({ [name] = 'allow' }, config.get().approval.tools)
      t.ok(not line:find('[^\32-\126]'), line)
    end
  end)
end)

it('denials in a row make it possible to silence that session alone', function()
  local b = bench()
  b.says('deny')
  b.run()
  b.run()
  b.says('once')
  b.run()
  b.says('deny')
  for _ = 1, 3 do
    b.run()
    t.ok(not vim.list_contains(b.asked[#b.asked].choices, 'silence'))
  end
  b.says('silence')
  t.eq('access_denied', (b.run()))
  local count = #b.asked
  local result, call = b.run()
  t.eq({ 'access_denied', count }, { result, #b.asked })
  t.matches('denied all further questions', call.outcome.error.message)
  t.eq('user: silence', call.decision.by)
  b.says(nil)
  b.gateway.grants:unsilence()
  t.eq('waiting_approval', (b.run()))
  t.ok(not vim.list_contains(b.asked[#b.asked].choices, 'silence'))
  t.eq('waiting_approval', (b.run({}, { session = 's2' })))
  b.tool({ annotations = { read_only = true } })
  t.eq('ran', (b.run()))
end)

describe('whatever fails', function()
  it('denies', function()
    local b = bench()
    b.person = function() error('no window') end
    t.eq('access_denied', (b.run()))
    b.says(nil)
    b.gateway.ledger.verdict = function() error('no ledger') end
    b.tool({ annotations = { read_only = true } })
    t.eq('access_denied', (b.run()))
    t.eq({}, b.ran)
  end)

  it('asks when earlier decisions cannot be read, whatever the rules say', function()
    local b = bench()
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
    local decision = bench().gateway:judge(call)
    return decision.action
  end

  it('outside are found however they are written, and wherever they stand', function()
    vim.uv.fs_symlink(outside .. '/new.txt', root .. '/dangling')
    vim.uv.fs_symlink('../outside/new.txt', root .. '/relative')
    vim.uv.fs_symlink('relative', root .. '/twice')
    vim.uv.fs_symlink(outside, root .. '/folder')
    vim.env.MCPT_OUTSIDE = outside
    for _, path in ipairs({
      root .. '/dangling',
      root .. '/relative',
      root .. '/twice',
      root .. '/folder/../../outside/out.txt',
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
    t.eq('ask', verdict({ edits = { { text = '' }, { path = outside .. '/out.txt' } } }))
    t.eq('ask', verdict({ uri = 'file://' .. outside .. '/out.txt' }))
    t.eq('allow', verdict({ uri = 'nvim://buffers' }))
    t.eq('ask', verdict({ paths = { { root .. '/in.txt', { outside .. '/out.txt' } } } }))
    for _, key in ipairs({ 'filePath', 'FILE_PATH', 'file-name', 'newPath', 'Path', 'workingDirectory' }) do
      t.eq({ key, 'ask' }, { key, verdict({ [key] = outside .. '/out.txt' }) })
    end
    t.eq('allow', verdict({ profile = '/x', pathology = '/x', xpath = '/html' }))
  end)

  it('are found in each form of a file URI, and asked for where readers of URIs differ', function()
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
      t.eq({ uri, expected }, { uri, verdict({ uri = uri }) })
      t.eq({ uri, expected }, { uri, verdict({ path = uri }) })
    end
  end)

  it('that a tool might find by a pattern are asked for, unless they are called so', function()
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

  it('that no one can judge are denied', function()
    vim.uv.fs_symlink('b', root .. '/a')
    vim.uv.fs_symlink('a', root .. '/b')
    for _, path in ipairs({ root .. '/a', root .. '/a/x', root .. '/in.txt\0', 'file://' .. root .. '/in%00.txt' }) do
      t.eq({ path, 'deny' }, { path, verdict({ path = path }) })
    end
  end)

  it('are sensitive by each form of pattern', function()
    config.setup({ sensitive = { patterns = { 'Exact', '*.end', '**/dir/**', '**/a/b', 'x?z', '**/deep/*.txt' } } })
    for path, expected in pairs({
      ['/p/exact'] = true,
      ['/p/exact2'] = false,
      ['/p/a.END'] = true,
      ['/p/a.end2'] = false,
      ['/p/dir/x/y'] = true,
      ['dir/x'] = true,
      ['/p/dirx/y'] = false,
      ['/p/a/b'] = true,
      ['/p/xa/b'] = false,
      ['/p/xyz'] = true,
      ['/p/xyzz'] = false,
      ['/p/deep/a.txt'] = true,
      ['/p/deep/a/b.txt'] = false,
    }) do
      t.eq({ path, expected }, { path, sensitive.is_sensitive(path) })
    end
  end)
end)
