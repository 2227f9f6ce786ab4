-- every Neovim
local executors = require('executors')
local t = require('helpers')

--- An executor over its own registry that lets everything run.
local function bench(settings)
  local executor, registry = executors.new(settings)
  registry.prefix = t.returns('nvim_')
  --- `tool(name, execute, other fields)`, or `tool(definition)`
  local function tool(def, execute, more)
    if type(def) == 'string' then
      def = vim.tbl_extend('error', { name = def, execute = execute }, more or {})
    end
    def.description = 'x'
    assert(registry:add('tools', def))
  end
  local function run(name, args, opts)
    return executor:execute(name, args, vim.tbl_extend('force', { host = 'test' }, opts or {}))
  end
  return { registry = registry, executor = executor, tool = tool, run = run }
end

local function error_of(call) return call.outcome and call.outcome.error or {} end

local b

before_each(function() b = bench() end)

describe('a tool that answers', function()
  it('at once has ended when execute returns', function()
    b.tool('now', function(ctx, args) ctx({ got = args }) end)
    local call = b.run('now', { a = 1 })
    t.eq('done', call.state)
    t.eq({ got = { a = 1 } }, call.outcome.value)
    t.eq(0, b.executor.active)
    t.eq(nil, next(b.executor.calls))
  end)

  it("in guill's style execute(cb, args) works the same", function()
    b.tool('old', function(cb, args)
      if args.fail then
        cb(nil, 'no luck')
      else
        cb('fine')
      end
    end)
    t.eq('fine', b.run('old', {}).outcome.value)
    t.eq({ code = 'tool_error', message = 'no luck' }, error_of(b.run('old', { fail = true })))
  end)

  it('later ends later', function()
    b.tool('later', function(ctx)
      vim.defer_fn(function() ctx('done') end, 10)
    end)
    local call = b.run('later')
    t.eq('running', call.state)
    t.eq(1, b.executor.active)
    t.ended(call)
    t.eq('done', call.outcome.value)
    t.eq(0, b.executor.active)
  end)

  it('in steps hands on each state in order', function()
    local states = {}
    b.tool({
      name = 'steps',
      run = function(ctx, args)
        for i = 1, args.n do
          coroutine.yield('step ' .. i)
          ctx:await(function(done) vim.defer_fn(done, 1) end)
        end
        return 'end'
      end,
    })
    local call = b.run('steps', { n = 3 }, {
      listener = {
        state = function(_, _, state) table.insert(states, state) end,
      },
    })
    t.ended(call)
    t.eq({ 'step 1', 'step 2', 'step 3' }, states)
    t.eq('end', call.outcome.value)
  end)

  it('with nil gives an empty result, in both styles', function()
    b.tool('one', t.answers())
    b.tool({ name = 'two', run = function() end })
    t.eq('empty', b.run('one').outcome.payload.kind)
    t.eq('empty', b.run('two').outcome.payload.kind)
  end)

  it('with await that is ready at once does not wait', function()
    b.tool({
      name = 'ready',
      run = function(ctx)
        local a, c = ctx:await(function(done)
          done(1, nil)
          done(2)
        end)
        return { a = a, c = c == nil }
      end,
    })
    t.eq({ a = 1, c = true }, b.run('ready').outcome.value)
  end)
end)

describe('a tool that fails', function()
  it('says how: ctx(nil, err), ctx:fail, a table, a code', function()
    local how = {
      t.answers(nil, 'text'),
      t.answers(nil, { code = 'not_found', message = 'gone' }),
      function(ctx) ctx:fail('just text') end,
      function(ctx) ctx:fail('stale', 'it changed') end,
      t.answers(nil, { code = 'no_such_code', message = 'odd' }),
    }
    local expected = {
      { code = 'tool_error', message = 'text' },
      { code = 'not_found', message = 'gone' },
      { code = 'tool_error', message = 'just text' },
      { code = 'stale', message = 'it changed' },
      { code = 'tool_error', message = 'odd' },
    }
    for i, fn in ipairs(how) do
      b.tool({ name = 'fails', execute = fn })
      t.eq(expected[i], error_of(b.run('fails')))
    end
  end)

  it('by throwing gives the message without place or traceback', function()
    b.tool('throws', function() error('boom') end)
    b.tool({
      name = 'throws_later',
      run = function(ctx)
        ctx:await(vim.schedule)
        error('late boom')
      end,
    })
    t.eq({ code = 'execution_error', message = 'Tool execution error: boom' }, error_of(b.run('throws')))
    local call = b.run('throws_later')
    t.ended(call)
    t.eq({ code = 'execution_error', message = 'Tool execution error: late boom' }, error_of(call))
  end)

  it('says no more than a result may say', function()
    b = bench({ max_result = 100 })
    local long = ('ä'):rep(100)
    b.tool('says', t.answers(nil, long))
    b.tool('throws', function() error(long, 0) end)
    t.eq(('ä'):rep(50) .. '…', error_of(b.run('says')).message)
    t.eq('Tool execution error: ' .. ('ä'):rep(39) .. '…', error_of(b.run('throws')).message)
  end)

  it('by throwing an object keeps its code, or shows it', function()
    b.tool('coded', function() error({ code = 'busy', message = 'later please' }) end)
    b.tool('odd', function() error({ some = 'table' }) end)
    t.eq({ code = 'busy', message = 'later please' }, error_of(b.run('coded')))
    t.eq('execution_error', error_of(b.run('odd')).code)
  end)

  it('with `return ctx:fail(…)` in a run tool fails once', function()
    b.tool({
      name = 'failing',
      run = function(ctx) return ctx:fail('not_found', 'no') end,
    })
    t.eq('not_found', error_of(b.run('failing')).code)
  end)
end)

describe('time', function()
  it('is up after the timeout of the definition, and the tool is told', function()
    local told
    b.tool('slow', function(ctx)
      ctx:on_cancel(function(reason) told = { reason, ctx:cancelled() } end)
    end, { timeout = 30 })
    local call = b.run('slow', {}, { timeout = 60000 })
    t.ended(call, 1000)
    t.eq('timed_out', call.state)
    t.eq('timeout', error_of(call).code)
    t.eq({ 'timeout', 'timeout' }, told)
  end)

  it('comes from the call, else from the options, for a tool that sets none; 0 is none', function()
    b = bench({ tool_timeout = 30 })
    b.tool({ name = 'never', execute = function() end })
    b.tool({ name = 'forever', timeout = 0, execute = function() end })
    local by_option, by_call = b.run('never'), b.run('never', {}, { timeout = 10 })
    local forever = b.run('forever')
    t.eq(nil, forever.deadline)
    t.ended(by_call)
    t.ended(by_option)
    t.eq('running', forever.state)
    forever:cancel('user')
  end)

  it('that has passed refuses the call, and nothing runs', function()
    local ran = false
    b.tool('x', function(ctx)
      ran = true
      ctx()
    end)
    local call = b.run('x', {}, { start_by = vim.uv.hrtime() - 1 })
    t.eq('editor_blocked', error_of(call).code)
    t.eq(false, ran)
    t.eq(0, b.executor.active)
  end)
end)

it('cancel reaches the tool, stops a run tool for good and drops what comes later', function()
  local went_on, answer = 0, nil
  b.tool({
    name = 'loops',
    run = function(ctx)
      while true do
        ctx:await(function(done) vim.defer_fn(done, 5) end)
        went_on = went_on + 1
      end
    end,
  })
  b.tool('holds', function(ctx) answer = ctx end)
  local loop, hold = b.run('loops'), b.run('holds')
  t.wait(function() return went_on > 1 end)
  t.eq(true, b.executor:cancel(loop.id, 'client'))
  local seen = went_on
  vim.wait(30)
  t.eq(seen, went_on)
  b.executor:cancel(hold.id, 'client')
  answer('too late')
  t.eq('cancelled', hold.state)
  t.eq(nil, hold.outcome.value)
  t.eq(0, b.executor.active)
end)

describe('a call', function()
  it('of a mistyped tool is refused with the names that are near', function()
    for _, name in ipairs({ 'cursor', 'line_read', 'other' }) do
      b.tool({ name = name, execute = function() end })
    end
    local function message(name) return error_of(b.run(name)).message end
    t.eq('Unknown tool: nvim_curser; did you mean nvim_cursor?', message('nvim_curser'))
    t.eq('Unknown tool: curser; did you mean cursor?', message('curser'))
    t.eq('Unknown tool: line_raed; did you mean line_read?', message('line_raed'))
    t.eq('Unknown tool: ' .. ('c'):rep(65), message(('c'):rep(65)))
    t.ok(#message(('c'):rep(1000000)) < 300)
  end)

  it('of a mistyped tool costs little, however many tools there are', function()
    for i = 1, 500 do
      b.tool({
        name = ('%s_tool_with_a_long_name_%03d'):format(i % 2 == 0 and 'read' or 'write', i),
        execute = function() end,
      })
    end
    local began = vim.uv.hrtime()
    t.matches('did you mean', error_of(b.run('raed_tool_with_a_long_name_004')).message)
    t.ok((vim.uv.hrtime() - began) / 1e6 < 2000, 'the editor is held')
  end)

  it('of an unknown tool, by the wrong type or beyond the room is refused', function()
    b = bench({ max_calls = 1 })
    b.tool({ name = 'x', args = { n = { type = 'integer', required = true } }, execute = function() end })
    t.eq({ code = 'unknown_tool', message = 'Unknown tool: nope' }, error_of(b.run('nope')))
    local bad = error_of(b.run('x', {}))
    t.eq('validation_error', bad.code)
    t.eq('n', bad.errors[1].field)
    t.eq('validation_error', error_of(b.run('x', 'text')).code)
    local held = b.run('x', { n = 1 })
    t.eq('busy', error_of(b.run('x', { n = 2 })).code)
    held:cancel('user')
    t.eq('running', b.run('x', { n = 3 }).state)
  end)

  it('are told which of their names the tool does not have when one is missing', function()
    b.tool({ name = 'x', args = { query = { type = 'string', required = true } }, execute = function() end })
    t.eq(
      'Invalid arguments for x: query: is required (it has no argument path, pattern)',
      error_of(b.run('x', { pattern = 'a', path = 'b' })).message
    )
    t.eq('Invalid arguments for x: query: is required', error_of(b.run('x', {})).message)
  end)

  it('fails when the check of its arguments throws, and takes no room', function()
    local schema = { properties = { child = { ['$ref'] = '#' } } }
    for _ = 1, 44 do
      schema = { allOf = { schema } }
    end
    schema.type = 'object'
    b.tool({ name = 'deep', input_schema = schema, execute = function() end })
    local args = {}
    for _ = 1, 190 do -- more than Lua's stack holds of such a schema
      args = { child = args }
    end
    local call = b.run('deep', args)
    t.eq({ 'failed', 'execution_error' }, { call.state, error_of(call).code })
    t.eq({ 0 }, { b.executor.active, next(b.executor.calls) })
  end)

  it('finds a tool by its published name first, then by its own', function()
    local function answering(word) return t.answers(word) end
    b.tool({ name = 'a', execute = answering('a') })
    b.tool({ name = 'nvim_a', execute = answering('nvim_a') })
    t.eq('a', b.run('a').outcome.value)
    t.eq('a', b.run('nvim_a').outcome.value)
    t.eq('nvim_a', b.run('nvim_nvim_a').outcome.value)
  end)

  it('goes on when its tool is unregistered or replaced in flight', function()
    local ctx
    local def = {
      name = 'x',
      execute = function(c) ctx = c end,
    }
    b.tool(def)
    local call = b.run('x')
    b.registry:remove('tools', 'x')
    t.eq('unknown_tool', error_of(b.run('x')).code)
    ctx('still here')
    t.eq('still here', call.outcome.value)
  end)

  it('treats null and empty arguments as the schema wants', function()
    b.tool({
      name = 'x',
      args = { n = { type = 'integer', default = 4 }, m = { type = 'object' } },
      execute = function(ctx, args) ctx({ n = args.n, m = args.m ~= nil }) end,
    })
    t.eq({ n = 4, m = false }, b.run('x', { n = vim.NIL, m = vim.NIL }).outcome.value)
    t.eq({ n = 4, m = true }, b.run('x', { m = vim.empty_dict() }).outcome.value)
    t.eq({ n = 4, m = false }, b.run('x', nil).outcome.value)
    t.eq({ n = 4, m = false }, b.run('x', vim.NIL).outcome.value)
  end)

  it('is kept with its outcome until acknowledged, when asked to, or until it expires', function()
    b = bench({ result_ttl = 0 })
    b.tool('x', t.answers('kept'))
    local one, two = b.run('x', {}, { keep = true }), b.run('x', {}, { keep = true })
    t.eq('kept', b.executor:get(one.id).outcome.value)
    b.executor:acknowledge({ one.id, 'unknown' })
    t.eq(nil, b.executor:get(one.id))
    b.executor:sweep()
    t.eq(nil, b.executor:get(two.id))
  end)

  it('that has expired is gone when its time is up, not up to twice as late', function()
    b = bench({ result_ttl = 1000 })
    b.tool('x', t.answers('kept'))
    local held = {}
    b.tool('held', function(ctx) table.insert(held, ctx) end)
    local first, second = b.run('x', {}, { keep = true }), b.run('held', {}, { keep = true })
    vim.wait(700)
    held[1]('late')
    t.wait(function() return not b.executor:get(first.id) end)
    t.ok(b.executor:get(second.id))
    t.wait(function() return not b.executor:get(second.id) end)
    local ms = (vim.uv.hrtime() - second.ended_at) / 1e6
    t.ok(ms >= 1000 and ms < 2000, ('it was kept for %d ms'):format(ms))
  end)

  it('is not made again under its id, acknowledged or not', function()
    local runs = 0
    b.tool('x', function(ctx)
      runs = runs + 1
      ctx()
    end)
    b.run('x', {}, { id = 'b-1', keep = true })
    t.matches('^the call b%-1 was already answered', error_of(b.run('x', {}, { id = 'b-1', keep = true })).message)
    b.executor:acknowledge({ 'b-1' })
    t.eq('cancelled', error_of(b.run('x', {}, { id = 'b-1', keep = true })).code)
    b.run('x', {}, { id = 'b-2' })
    t.eq('cancelled', error_of(b.run('x', {}, { id = 'b-2' })).code)
    t.eq(2, runs)
    b.tool('long', function() end)
    local first = b.run('long', {}, { id = 'same' })
    t.matches('^the call same is already running', error_of(b.run('long', {}, { id = 'same' })).message)
    first:cancel('user')
  end)

  it('that is cancelled before it comes is refused, however many others end meanwhile', function()
    b.tool('x', t.answers())
    b.executor:cancel('b-1', 'client')
    for i = 1, 2000 do
      b.run('x', {}, { id = 'c-' .. i })
    end
    t.eq('cancelled', error_of(b.run('x', {}, { id = 'b-1' })).code)
  end)

  it('that runs is not lost to an acknowledge or to expiry', function()
    b = bench({ result_ttl = 0 })
    b.tool({ name = 'x', execute = function() end })
    local call = b.run('x', {}, { keep = true })
    b.executor:acknowledge({ call.id })
    b.executor:sweep()
    t.ok(b.executor:get(call.id))
    call:cancel('user')
  end)

  it('has a state of its own per session', function()
    b.tool({
      name = 'count',
      state = function() return { n = 0 } end,
      execute = function(ctx)
        ctx.state.n = ctx.state.n + 1
        ctx(ctx.state.n)
      end,
    })
    t.eq(1, b.run('count', {}, { session = 'a' }).outcome.value)
    t.eq(2, b.run('count', {}, { session = 'a' }).outcome.value)
    t.eq(1, b.run('count', {}, { session = 'b' }).outcome.value)
    t.eq(1, b.run('count', {}).outcome.value)
    t.eq(1, b.run('count', {}).outcome.value)
    t.eq(3, b.run('count', {}, { session = 'a' }).outcome.value)
    for i = 1, 600 do -- the state of a session that is not used for long is dropped
      b.run('count', {}, { session = 's' .. i })
    end
    t.eq(1, b.run('count', {}, { session = 'a' }).outcome.value)
    t.eq(2, b.run('count', {}, { session = 's600' }).outcome.value)
  end)

  it('shares its state with no other tool, and gets a new one when it is loaded again', function()
    local function state() return { n = 0 } end
    local function count(ctx)
      ctx.state.n = ctx.state.n + 1
      ctx(ctx.state.n)
    end
    b.tool({ name = 'one', state = state, execute = count })
    b.tool({ name = 'two', state = state, execute = count })
    t.eq(1, b.run('one', {}, { session = 'a' }).outcome.value)
    t.eq(1, b.run('two', {}, { session = 'a' }).outcome.value)
    t.eq(2, b.run('one', {}, { session = 'a' }).outcome.value)
    b.tool({
      name = 'one',
      state = function() return { n = 10 } end,
      execute = count,
    })
    t.eq(11, b.run('one', {}, { session = 'a' }).outcome.value)
    t.eq(2, b.run('two', {}, { session = 'a' }).outcome.value)
  end)

  it('fails when its state cannot be made, and nothing runs', function()
    local ran = false
    b.tool({
      name = 'x',
      state = function() error('no state') end,
      execute = function(ctx)
        ran = true
        ctx()
      end,
    })
    t.eq('execution_error', error_of(b.run('x', {}, { session = 'a' })).code)
    t.eq({ false, 0 }, { ran, b.executor.active })
  end)

  it('tells its tool who asks', function()
    b.tool(
      'who',
      function(ctx) ctx({ ctx.host, ctx.client.name, ctx.session, ctx.id, ctx.deadline > vim.uv.hrtime() }) end
    )
    local call = b.run('who', {}, { id = 'b-1', client = { name = 'c' }, session = 's' })
    t.eq({ 'test', 'c', 's', 'b-1', true }, call.outcome.value)
  end)
end)

it('code of others that throws around a call changes neither the outcome nor the count of active calls', function()
  b.tool('later', function(ctx)
    vim.schedule(function() ctx('answered') end)
  end)
  b.executor:watch(function() error('a watcher failed') end)
  local done
  local call = b.run('later', {}, {
    listener = {
      done = function(_, finished) done = finished.outcome.value end,
    },
  })
  call:on_end(function() error('work at the end failed') end)
  t.wait(function() return done end)
  t.eq({ 'answered', 0 }, { done, b.executor.active })
end)

it('progress and log from a libuv callback reach listeners that use the API', function()
  local seen = {}
  b.tool('fast', function(ctx)
    local timer = assert(vim.uv.new_timer())
    timer:start(1, 0, function()
      timer:close()
      ctx:progress(1, 2)
      ctx:log('info', 'x')
      ctx('done')
    end)
  end)
  local call = b.run('fast', {}, {
    listener = {
      progress = function() table.insert(seen, vim.api.nvim_buf_is_valid(0)) end,
      log = function() table.insert(seen, vim.api.nvim_buf_is_valid(0)) end,
    },
  })
  t.ended(call)
  t.eq({ true, true }, seen)
  t.eq('done', call.outcome.value)
end)
