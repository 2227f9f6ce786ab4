-- every Neovim
local executors = require('executors')
local t = require('helpers')

--- An executor that allows all calls, with its own registry.
local function setup(settings)
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

--- A handler that counts its calls in the state of its tool.
local function count(ctx)
  ctx.state.n = ctx.state.n + 1
  ctx(ctx.state.n)
end

local b

--- The value of a call in a session.
local function value_in(session, name) return b.run(name, {}, { session = session }).outcome.value end

before_each(function() b = setup() end)

describe('a tool that returns a result', function()
  it("in guill's style execute(cb, args) works the same", function()
    b.tool('old', function(cb, args) cb(not args.fail and 'fine' or nil, args.fail and 'no luck') end)
    t.eq('fine', b.run('old', {}).outcome.value)
    t.eq({ code = 'tool_error', message = 'no luck' }, error_of(b.run('old', { fail = true })))
  end)

  it('does not wait for an await that is ready', function()
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
  it('reports its error, however it fails', function()
    for i, case in ipairs({
      { t.answers(nil, 'text'), 'tool_error', 'text' },
      { t.answers(nil, { code = 'not_found', message = 'gone' }), 'not_found', 'gone' },
      { function(ctx) ctx:fail('just text') end, 'tool_error', 'just text' },
      { function(ctx) ctx:fail('stale', 'it changed') end, 'stale', 'it changed' },
      { t.answers(nil, { code = 'no_such_code', message = 'odd' }), 'tool_error', 'odd' },
      { function() error('boom') end, 'execution_error', 'Tool execution error: boom' },
      { function() error({ code = 'busy', message = 'later please' }) end, 'busy', 'later please' },
    }) do
      b.tool({ name = 'fails', execute = case[1] })
      local call = b.run('fails')
      t.eq({ i, { code = case[2], message = case[3] } }, { i, error_of(call) })
      t.eq({ i, case[2] == 'execution_error' }, { i, call.trace ~= nil })
    end
    b.tool({ name = 'run', run = function(ctx) return ctx:fail('not_found', 'no') end })
    t.eq('not_found', error_of(b.run('run')).code)
    b.tool('odd', function() error({ some = 'table' }) end)
    t.eq('execution_error', error_of(b.run('odd')).code)
    local function throw_later(ctx)
      ctx:await(vim.schedule)
      error('late boom')
    end
    b.tool({ name = 'throws_later', run = throw_later })
    local actual = t.ended(b.run('throws_later')).error
    t.eq({ code = 'execution_error', message = 'Tool execution error: late boom' }, actual)
  end)

  it('truncates its message at the limit of results', function()
    b = setup({ max_result = 100 })
    local long = ('ä'):rep(100)
    b.tool('says', t.answers(nil, long))
    b.tool('throws', function() error(long, 0) end)
    t.eq(('ä'):rep(50) .. '…', error_of(b.run('says')).message)
    t.eq('Tool execution error: ' .. ('ä'):rep(39) .. '…', error_of(b.run('throws')).message)
  end)
end)

describe('the timeout', function()
  it('of the definition applies, and the tool is notified', function()
    local seen
    b.tool('slow', function(ctx)
      ctx:on_cancel(function(reason) seen = { reason, ctx:cancelled() } end)
    end, { timeout = 30 })
    local call = b.run('slow', {}, { timeout = 60000 })
    t.ended(call, 1000)
    t.eq({ 'timed_out', 'timeout', { 'timeout', 'timeout' } }, { call.state, error_of(call).code, seen })
  end)

  it('comes from the call, else from the options, for a tool without one; 0 means none', function()
    b = setup({ tool_timeout = 30 })
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

  it('that has passed before the start refuses the call', function()
    local ran = false
    b.tool('x', function() ran = true end)
    local call = b.run('x', {}, { start_by = vim.uv.hrtime() - 1 })
    t.eq({ 'editor_blocked', false, 0 }, { error_of(call).code, ran, b.executor.active })
  end)
end)

it('cancel notifies the tool, stops a run tool and drops later results', function()
  local rounds, answer = 0, nil
  b.tool({
    name = 'loops',
    run = function(ctx)
      while true do
        ctx:await(function(done) vim.defer_fn(done, 5) end)
        rounds = rounds + 1
      end
    end,
  })
  b.tool('holds', function(ctx) answer = ctx end)
  local loop, hold = b.run('loops'), b.run('holds')
  t.wait(function() return rounds > 1 end)
  t.eq(true, b.executor:cancel(loop.id, 'client'))
  local seen = rounds
  vim.wait(30)
  t.eq(seen, rounds)
  b.executor:cancel(hold.id, 'client')
  answer('too late')
  t.eq({ 'cancelled', nil, 0 }, { hold.state, hold.outcome.value, b.executor.active })
end)

describe('a call', function()
  it('of a mistyped tool is refused with similar names', function()
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

  it('is refused for an unknown tool, wrong arguments or too many calls', function()
    b = setup({ max_calls = 1 })
    b.tool({ name = 'x', args = { n = { type = 'integer', required = true } }, execute = function() end })
    t.eq({ code = 'unknown_tool', message = 'Unknown tool: nope' }, error_of(b.run('nope')))
    local bad = error_of(b.run('x', {}))
    t.eq({ 'validation_error', 'n' }, { bad.code, bad.errors[1].field })
    t.eq('validation_error', error_of(b.run('x', 'text')).code)
    local held = b.run('x', { n = 1 })
    t.eq('busy', error_of(b.run('x', { n = 2 })).code)
    held:cancel('user')
    t.eq('running', b.run('x', { n = 3 }).state)
  end)

  it('with a missing argument names the arguments that the tool does not have', function()
    b.tool({ name = 'x', args = { query = { type = 'string', required = true } }, execute = function() end })
    local message = 'Invalid arguments for x: query: is required (it has no argument path, pattern)'
    t.eq(message, error_of(b.run('x', { pattern = 'a', path = 'b' })).message)
    t.eq('Invalid arguments for x: query: is required', error_of(b.run('x', {})).message)
  end)

  it('fails when the check of its arguments throws, and is not active any more', function()
    local schema = { properties = { child = { ['$ref'] = '#' } } }
    for _ = 1, 44 do
      schema = { allOf = { schema } }
    end
    schema.type = 'object'
    b.tool({ name = 'deep', input_schema = schema, execute = function() end })
    local args = {}
    for _ = 1, 190 do -- deeper than Lua's stack allows for such a schema
      args = { child = args }
    end
    local call = b.run('deep', args)
    t.eq({ 'failed', 'execution_error' }, { call.state, error_of(call).code })
    t.eq({ 0 }, { b.executor.active, next(b.executor.calls) })
  end)

  it('finds a tool by its published name first, then by its own name', function()
    b.tool({ name = 'a', execute = t.answers('a') })
    b.tool({ name = 'nvim_a', execute = t.answers('nvim_a') })
    t.eq({ 'a', 'a' }, { b.run('a').outcome.value, b.run('nvim_a').outcome.value })
    t.eq('nvim_a', b.run('nvim_nvim_a').outcome.value)
  end)

  it('continues when its tool is unregistered', function()
    local ctx
    b.tool({ name = 'x', execute = function(c) ctx = c end })
    local call = b.run('x')
    b.registry:remove('tools', 'x')
    t.eq('unknown_tool', error_of(b.run('x')).code)
    ctx('still here')
    t.eq('still here', call.outcome.value)
  end)

  it('handles null and empty arguments as the schema requires', function()
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

  it('keeps its outcome until it is acknowledged or expires, if requested', function()
    b = setup({ result_ttl = 0 })
    b.tool('x', t.answers('kept'))
    local one, two = b.run('x', {}, { keep = true }), b.run('x', {}, { keep = true })
    t.eq('kept', b.executor:get(one.id).outcome.value)
    b.executor:acknowledge({ one.id, 'unknown' })
    t.eq(nil, b.executor:get(one.id))
    b.executor:sweep()
    t.eq(nil, b.executor:get(two.id))
  end)

  it('that has expired is removed in time', function()
    b = setup({ result_ttl = 1000 })
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
    t.ok(ms >= 1000 and ms < 10000, ('it was kept for %d ms'):format(ms))
  end)

  it('is not repeated under the same id, acknowledged or not', function()
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
    t.eq({ 'cancelled', 2 }, { error_of(b.run('x', {}, { id = 'b-2' })).code, runs })
    b.tool('long', function() end)
    local first = b.run('long', {}, { id = 'same' })
    t.matches('^the call same is already running', error_of(b.run('long', {}, { id = 'same' })).message)
    first:cancel('user')
  end)

  it('that was cancelled before it arrives is refused, however many others end in between', function()
    b.tool('x', t.answers())
    b.executor:cancel('b-1', 'client')
    for i = 1, 2000 do
      b.run('x', {}, { id = 'c-' .. i })
    end
    t.eq('cancelled', error_of(b.run('x', {}, { id = 'b-1' })).code)
  end)

  it('that runs is not removed by an acknowledgment or by expiry', function()
    b = setup({ result_ttl = 0 })
    b.tool({ name = 'x', execute = function() end })
    local call = b.run('x', {}, { keep = true })
    b.executor:acknowledge({ call.id })
    b.executor:sweep()
    t.ok(b.executor:get(call.id))
    call:cancel('user')
  end)

  it('has its own state per session', function()
    b.tool({ name = 'count', state = function() return { n = 0 } end, execute = count })
    local values = {}
    for i, session in ipairs({ 'a', 'a', 'b', false, false, 'a' }) do
      values[i] = value_in(session or nil, 'count')
    end
    t.eq({ 1, 2, 1, 1, 1, 3 }, values)
    for i = 1, 600 do -- the state of a session that is not used for long is dropped
      value_in('s' .. i, 'count')
    end
    t.eq({ 1, 2 }, { value_in('a', 'count'), value_in('s600', 'count') })
  end)

  it('shares its state with no other tool, and gets a new one when its tool is registered again', function()
    local function state() return { n = 0 } end
    b.tool({ name = 'one', state = state, execute = count })
    b.tool({ name = 'two', state = state, execute = count })
    t.eq({ 1, 1, 2 }, { value_in('a', 'one'), value_in('a', 'two'), value_in('a', 'one') })
    b.tool({ name = 'one', state = function() return { n = 10 } end, execute = count })
    t.eq({ 11, 2 }, { value_in('a', 'one'), value_in('a', 'two') })
  end)

  it('fails when its state cannot be created, and does not run', function()
    local ran = false
    local function state() error('no state') end
    b.tool({ name = 'x', state = state, execute = function() ran = true end })
    t.eq('execution_error', error_of(b.run('x', {}, { session = 'a' })).code)
    t.eq({ false, 0 }, { ran, b.executor.active })
  end)

  it('is recorded as the last one of its session, not of its client', function()
    b.tool('count', count)
    b.run('count', {}, { session = 'a', client = { name = 'c' } })
    b.run('count', {}, { client = { name = 'd' } })
    local history = b.executor.history
    t.ok(history.last_of('a') and history.last_of('d'))
    t.eq({}, { history.last_of('b'), history.last_of('c') })
  end)

  it('passes the caller to its tool', function()
    local function who(ctx) ctx({ ctx.host, ctx.client.name, ctx.session, ctx.id, ctx.deadline > vim.uv.hrtime() }) end
    b.tool('who', who)
    local call = b.run('who', {}, { id = 'b-1', client = { name = 'c' }, session = 's' })
    t.eq({ 'test', 'c', 's', 'b-1', true }, call.outcome.value)
  end)
end)

it('a listener or hook that throws changes neither the outcome nor the number of active calls', function()
  b.tool('later', function(ctx)
    vim.schedule(function() ctx('answered') end)
  end)
  b.executor:watch(function() error('a watcher failed') end)
  local done
  local listener = { done = function(_, finished) done = finished.outcome.value end }
  local call = b.run('later', {}, { listener = listener })
  call:on_end(function() error('work at the end failed') end)
  t.wait(function() return done end)
  t.eq({ 'answered', 0 }, { done, b.executor.active })
end)

it('listeners of progress and log can use the API even if a libuv callback sent them', function()
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
  local function note() table.insert(seen, vim.api.nvim_buf_is_valid(0)) end
  local call = b.run('fast', {}, { listener = { progress = note, log = note } })
  t.ended(call)
  t.eq({ { true, true }, 'done' }, { seen, call.outcome.value })
end)
