-- Handlers that call `ctx` or return their result, through the public API.

local executors = require('executors')
local mcp_tools = require('mcp-tools')
local notifications = require('notifications')
local t = require('helpers')

--- Runs one tool that needs no decision.
local function run(def, args, opts)
  local executor, registry = executors.new({ max_result = 1e6 })
  def = type(def) == 'function' and { run = def } or def
  assert(registry:add('tools', vim.tbl_extend('keep', def, { name = 'x', description = 'x' })))
  return executor:execute('x', args, vim.tbl_extend('force', { host = 'test' }, opts or {}))
end

local function ended(...)
  local call = run(...)
  t.ended(call)
  return call
end

describe('arguments and coroutine of a `run` tool', function()
  local kept = setmetatable({}, { __mode = 'k' })

  before_each(function()
    require('jit').off() -- compiled code keeps single values for itself
    require('jit').flush()
  end)

  after_each(function() require('jit').on() end)

  --- Runs it; nothing here may reference its call, arguments or coroutine afterwards.
  local function use(fn, finish)
    local call = run(function(ctx, args)
      kept[args], kept[coroutine.running()] = true, true
      return fn(ctx)
    end, {})
    finish(call)
    t.ok(call:ended())
  end

  local function wait(call) t.ended(call) end

  for what, case in pairs({
    ['has returned at once'] = { function() return ('x'):rep(1000) end },
    ['has returned after waiting'] = {
      function(ctx)
        ctx:await(vim.schedule)
        coroutine.yield()
        return 1
      end,
      wait,
    },
    ['was cancelled while it waited'] = {
      function(ctx)
        ctx:await(function() end)
      end,
      function(call) call:cancel('user') end,
    },
    ['calls ctx and then waits for ever'] = {
      function(ctx)
        ctx('early')
        ctx:await(function() end)
      end,
    },
    ['has thrown'] = {
      function(ctx)
        ctx:await(vim.schedule)
        error('boom')
      end,
      wait,
    },
  }) do
    it('are released when it ' .. what, function()
      use(case[1], case[2] or function() end)
      collectgarbage()
      collectgarbage()
      t.ok(next(kept) == nil)
    end)
  end
end)

describe('a tool in a callback where the API cannot be used', function()
  it('continues outside of it, in a `run` tool', function()
    local call = ended(function(ctx)
      local done = ctx:await(function(done) vim.system({ vim.v.progpath, '--version' }, {}, done) end)
      return { code = done.code, buffer = vim.api.nvim_create_buf(false, true) > 0, fast = vim.in_fast_event() }
    end)
    t.eq({ code = 0, buffer = true, fast = false }, call.outcome.value)
  end)

  it('can read its context there', function()
    local read
    local function execute(ctx)
      vim.system({ vim.v.progpath, '--version' }, {}, function()
        read = { pcall(function() return vim.in_fast_event() and { ctx.root, ctx.cwd, ctx.host } end) }
        ctx('answer')
      end)
    end
    ended({ execute = execute })
    t.eq({ true, { require('mcp-tools.instances.project').root(), vim.uv.cwd(), 'test' } }, read)
  end)

  for _, answer in ipairs({ t.answers('answer'), function(ctx) ctx:fail('stale', 'it changed') end }) do
    it('may end there: the listener runs where the API can be used', function()
      local fast
      local function execute(ctx)
        vim.system({ vim.v.progpath, '--version' }, {}, function() answer(ctx) end)
      end
      local function done() fast = vim.in_fast_event() end
      local call = ended({ execute = execute }, {}, { listener = { done = done } })
      local outcome = call.outcome
      t.eq({ 'answer', false }, { outcome.value or outcome.error.code == 'stale' and 'answer', fast })
    end)
  end
end)

describe('a result that cannot be encoded', function()
  local function hostile()
    return setmetatable({ a = 1 }, { __index = function() error('no such thing here') end })
  end

  it('fails the call, at once and later, in both styles', function()
    local function later(ctx)
      vim.schedule(function() ctx(hostile()) end)
    end
    local function after_await(ctx)
      ctx:await(vim.schedule)
      return hostile()
    end
    local handlers =
      { { execute = t.answers(hostile()) }, { execute = later }, { run = hostile }, { run = after_await } }
    for _, handler in ipairs(handlers) do
      handler.output_schema = { type = 'object', properties = { b = { type = 'string' } } }
      local call = ended(handler)
      t.eq('execution_error', call.outcome.error and call.outcome.error.code)
      t.matches('no such thing here', call.outcome.error.message)
    end
  end)

  it('or an error that cannot be read, fails the call', function()
    local call = run({ execute = t.answers(nil, hostile()) })
    t.eq('execution_error', call.outcome.error and call.outcome.error.code)
  end)
end)

describe('the values that a `run` tool returns', function()
  it('fail the call if they are nil and an error; otherwise the second one is ignored', function()
    local call = ended(function(ctx)
      ctx:await(vim.schedule)
      return nil, { code = 'not_found', message = 'no such mark' }
    end)
    t.eq('not_found no such mark', call.outcome.error.code .. ' ' .. call.outcome.error.message)
    call = ended({ run = function() return ('aa'):gsub('a', 'b') end })
    t.eq('bb', call.outcome.value)
  end)
end)

it('the timeout does not include the time before the tool first waits', function()
  local started
  local call = ended({
    timeout = 200,
    execute = function()
      started = vim.uv.hrtime()
      vim.uv.sleep(120)
    end,
  })
  t.eq('timed_out', call.state)
  local ms = (vim.uv.hrtime() - started) / 1e6
  t.ok(ms >= 200, ('it was timed out after %d ms'):format(ms))
end)

describe('progress', function()
  it('that is not a finite number is ignored', function()
    local seen = {}
    local call = run(function(ctx)
      ctx:progress(1, 2)
      ctx:progress(0 / 0, 2)
      ctx:progress(1 / 0, 2)
      ctx:progress(2, 1 / 0)
      return 'done'
    end, {}, {
      listener = {
        progress = function(_, one) table.insert(seen, { one.latest.done, one.latest.total or 'none' }) end,
      },
    })
    t.eq({ { { 1, 2 }, { 2, 'none' } }, 'done' }, { seen, call.outcome.value })
  end)

  it('with an argument of another type in a timer ends the call without an error there', function()
    local timer = assert(vim.uv.new_timer())
    local ok, thrown = true, nil
    local function execute(ctx)
      timer:start(1, 1, function()
        ok, thrown = pcall(ctx.progress, ctx, 1, 'half', 2)
      end)
    end
    local call = ended({ execute = execute })
    timer:close()
    t.eq({ true }, { ok, thrown })
    local message = 'Tool execution error: ctx:progress: total: expected number, got string'
    t.eq({ 'execution_error', message }, { call.outcome.error.code, call.outcome.error.message })
  end)

  it('with an argument of another type in the tool itself is an error at its line', function()
    local call = run({ execute = function(ctx) ctx:progress('half') end })
    t.matches('ctx_spec.lua:%d+: ctx:progress: done: expected number, got string', call.trace)
  end)
end)

local function tool(name, execute, fields)
  local base = { name = name, description = 'x', annotations = { read_only = true }, execute = execute }
  mcp_tools.register(vim.tbl_extend('force', base, fields or {}))
end

---@return { result: any, err: table? }
local function called(name, ms)
  local outcome
  mcp_tools.call(name, {}, {}, function(result, err) outcome = { result = result, err = err } end)
  return t.wait(function() return outcome end, ms or 2000, 'the end of ' .. name)
end

describe('a handler that returns its result', function()
  notifications.each()

  it('times out, and its author is told once what to write', function()
    tool('returns', function() return { some = 'result' } end, { timeout = 50 })
    local err = called('returns').err
    t.fails('timeout', 'returned a table, which is ignored; results are passed to `ctx%(result%)`', nil, err)
    called('returns')
    notifications.wait("Tool 'returns': `execute` returned a table")
    t.eq(1, #notifications.list)
  end)

  it('gets a hint how to return an error', function()
    tool('refuses', function() return nil, 'no such thing' end, { timeout = 50 })
    t.matches('returned nil and a string.*`ctx:fail%(message%)`', called('refuses').err.message)
  end)

  it('may keep its ctx, answer later and return anything', function()
    for i, value in ipairs({ 'text', { 1 }, 42, true, function() end }) do
      local name = 'later_' .. i
      tool(name, function(ctx)
        vim.defer_fn(function() ctx('answered') end, 50)
        return value
      end)
      t.eq({ result = 'answered' }, called(name))
    end
    tool('handle', function(ctx)
      return vim.system({ 'sleep', '0.1' }, {}, function(done) ctx(done.code) end)
    end)
    t.eq({ { result = 0 }, {} }, { called('handle'), notifications.list })
  end)

  it('and has called ctx gets no warning', function()
    tool('both', function(ctx)
      ctx('answered')
      return 'ignored'
    end)
    t.eq({ { result = 'answered' }, {} }, { called('both'), notifications.list })
  end)
end)

describe('an error of a tool', function()
  it('that is a table is shown by its message or contents', function()
    tool('throws_table', function() error({ reason = 'full', left = { 1, 2 } }) end)
    t.matches('{ *left = { *1, 2 *}, *reason = "full" *}', called('throws_table').err.message)
    tool('throws_message', function() error({ message = 'the disk is full', other = true }) end)
    t.eq('Tool execution error: the disk is full', called('throws_message').err.message)
  end)

  it('is in the log with file and line', function()
    tool('throws', function() error('on purpose') end)
    t.eq('Tool execution error: on purpose', called('throws').err.message)
    t.matches('throws%) threw: .*ctx_spec.lua:%d+: on purpose', require('mcp-tools.log').lines(1)[1])
  end)
end)
