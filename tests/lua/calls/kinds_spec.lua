local Executor = require('mcp-tools.calls.executor')
local Registry = require('mcp-tools.registry.store')
local content = require('mcp-tools.content')
local t = require('helpers')

local registry, executor, limits

local function run(kind, name, args, opts)
  local call = executor:execute(name, args or {}, vim.tbl_extend('force', { kind = kind, host = 'test' }, opts or {}))
  return t.ended(call)
end

--- The decoded result of a call of this kind.
local function result(kind, name, args)
  local outcome = run(kind, name, args)
  t.eq({ nil, 'content' }, { outcome.error, outcome.payload.kind })
  return vim.json.decode(outcome.payload.text)
end

local function failure(kind, name, args)
  local outcome = run(kind, name, args)
  t.ok(outcome.error, 'it did not fail')
  return outcome.error
end

before_each(function()
  registry = Registry.new()
  limits = { tool_timeout = 1000, max_calls = 10, max_result = 1000, max_resource = 100, result_ttl = 1000 }
  executor = Executor.new({
    registry = registry,
    gateway = { decide = function() error('nothing but tools comes here') end },
    settings = function() return limits end,
  })
end)

describe('reading a resource', function()
  local function define(value, more)
    local def = { uri = 'x://y', name = 'y', read = t.answers(value) }
    assert(registry:add('resources', vim.tbl_extend('force', def, more or {})))
  end

  local function gives(value, more)
    define(value, more)
    return result('resource', 'x://y').contents
  end

  it('returns text, bytes, data, or several of them', function()
    t.eq({ { uri = 'x://y', mimeType = 'text/plain', text = 'hé' } }, gives('hé'))
    t.eq({ { uri = 'x://y', mimeType = 'text/x-lua', text = '' } }, gives('', { mime_type = 'text/x-lua' }))
    local png = { { uri = 'x://y', mimeType = 'image/png', blob = 'AP8=' } }
    t.eq(png, gives({ blob = '\0\255', mime_type = 'image/png' }))
    t.eq(png, gives('\0\255', { mime_type = 'image/png' }))
    t.eq({ { uri = 'x://y', mimeType = 'a/b+json', text = '{}' } }, gives('{}', { mime_type = 'a/b+json' }))
    t.eq({ { uri = 'x://y', mimeType = 'application/octet-stream', blob = '' } }, gives({ blob = '' }))
    t.eq({ { uri = 'x://y', mimeType = 'application/json', text = '{"a":[1]}' } }, gives({ a = { 1 } }))
    t.eq({}, gives(nil))
    local css = content.resource({ uri = 'x://w', mime_type = 'text/css', text = 'c' })
    t.eq({
      { uri = 'x://y', mimeType = 'text/plain', text = 'a' },
      { uri = 'x://z', mimeType = 'text/plain', text = 'b' },
      { uri = 'x://w', mimeType = 'text/css', text = 'c' },
    }, gives({ { text = 'a' }, { text = 'b', uri = 'x://z' }, css }))
  end)

  it('works as a coroutine, later, with the variables of its URI', function()
    assert(registry:add('resources', {
      uri_template = 'x://{id}/{+rest}',
      name = 'y',
      run = function(ctx, params)
        ctx:await(function(done) vim.defer_fn(done, 5) end)
        return params.id .. '|' .. params.rest
      end,
    }))
    t.eq('a b|c/d', result('resource', 'x://a%20b/c/d').contents[1].text)
  end)

  it('is limited in encoded bytes', function()
    t.eq({ 100, 100 }, { #gives(('x'):rep(100))[1].text, #gives({ blob = ('x'):rep(75) })[1].blob })
    for _, value in ipairs({
      ('x'):rep(101),
      { blob = ('x'):rep(76) },
      { { text = ('x'):rep(60) }, { text = ('x'):rep(41) } },
    }) do
      define(value)
      local err = failure('resource', 'x://y')
      t.fails('too_large', '10%d bytes, the limit is 100 %(option limits%.resource%)', nil, err)
    end
  end)

  it('refuses invalid contents', function()
    local function err_of(value)
      define(value)
      return failure('resource', 'x://y')
    end
    t.eq('invalid_output', err_of({ { text = 'a' }, 5 }).code)
    t.eq('invalid_output', err_of({ text = 'a', blob = 'b' }).code)
    t.eq('invalid_output', err_of(content.image('x', 'image/png')).code)
    t.eq('not_serializable', err_of({ f = print }).code)
  end)

  it('repairs invalid UTF-8 of bundled resources only', function()
    local def = { uri = 'x://y', name = 'y', read = t.answers('a\255b') }
    assert(registry:add('resources', def, { origin = 'bundled' }))
    local one = result('resource', 'x://y').contents[1]
    t.eq({ 'a\239\191\189b', { lossy = true } }, { one.text, one._meta })
    assert(registry:add('resources', def))
    local outcome = run('resource', 'x://y')
    t.ok(outcome.payload.text:find('\255', 1, true)) -- the bridge detects and reports it
  end)

  it('ends like every call: throws, times out, is cancelled, is refused when late', function()
    define(nil, { timeout = 20, read = function() end })
    t.eq('timeout', failure('resource', 'x://y').code)
    local call = executor:execute('x://y', {}, { kind = 'resource', host = 'test' })
    t.eq('x://y', call.name)
    call:cancel('client')
    t.eq('cancelled', call.outcome.error.code)
    t.eq('editor_blocked', run('resource', 'x://y', {}, { start_by = 1 }).error.code)
    define(nil, { read = error })
    t.eq('execution_error', failure('resource', 'x://y').code)
    t.eq('not_found', failure('resource', 'x://z').code)
  end)
end)

describe('getting a prompt', function()
  local function define(get, args)
    assert(registry:add('prompts', { name = 'p', description = 'why', args = args, get = get }))
  end

  it('accepts messages in every form', function()
    local function messages(value)
      define(t.answers(value))
      local got = result('prompt', 'p')
      t.eq('why', got.description)
      return got.messages
    end
    local hello = { role = 'user', content = { type = 'text', text = 'hello' } }
    t.eq({ { hello }, { hello } }, { messages('hello'), (messages(content.text('hello'))) })
    t.eq({ hello, hello }, messages({ content.text('hello'), content.text('hello') }))
    t.eq({ hello }, messages({ { role = 'user', content = 'hello' } }))
    t.eq(
      { hello, { role = 'assistant', content = { type = 'image', data = 'AA==', mimeType = 'image/png' } } },
      messages({
        { role = 'user', content = content.text('hello') },
        { role = 'assistant', content = content.image('\0', 'image/png') },
      })
    )
    t.eq({ hello, hello }, messages({ { role = 'user', content = { content.text('hello'), 'hello' } } }))
    define(t.answers({ description = 'other', messages = { { role = 'user', content = 'hello' } } }))
    t.eq('other', result('prompt', 'p').description)
  end)

  it('checks its arguments, all at once', function()
    local seen
    define(function(ctx, args)
      seen = args
      ctx('x')
    end, { a = { required = true }, b = { required = true }, c = {} })
    local err = failure('prompt', 'p', { c = 5 })
    t.eq('validation_error', err.code)
    t.eq({
      { field = 'a', message = 'is required' },
      { field = 'b', message = 'is required' },
      { field = 'c', message = 'must be a string, got number' },
    }, err.errors)
    t.eq('validation_error', failure('prompt', 'p', { a = ' ', b = 'x' }).code)
    result('prompt', 'p', { a = '1', b = '2', c = '', other = 'x' })
    t.eq({ { a = '1', b = '2' }, 'not_found' }, { seen, failure('prompt', 'q').code })
  end)

  it('refuses invalid messages', function()
    local bad = { { role = 'system', content = 'x' } }
    for _, value in ipairs({ {}, bad, { { role = 'user', content = 5 } }, { 5 }, 5 }) do
      define(t.answers(value))
      t.eq('invalid_output', failure('prompt', 'p').code)
    end
    define(t.answers(('x'):rep(1001)))
    t.eq('too_large', failure('prompt', 'p').code)
  end)
end)

describe('completing', function()
  local function template(value)
    local def = { uri_template = 'x://{id}', name = 'y', read = print, complete = { id = t.answers(value) } }
    assert(registry:add('resources', def))
  end

  local function request(ref, name, value, arguments)
    return { ref = ref, argument = { name = name, value = value }, context = { arguments = arguments } }
  end

  local function values_for(...) return result('completion', 'completion', request(...)) end

  it('calls the function of the argument with its prefix and the other arguments', function()
    local seen
    local function complete(ctx, prefix, arguments)
      seen = { prefix, arguments }
      vim.schedule(function() ctx({ prefix .. 1, prefix .. 2 }) end)
    end
    local args = { a = { complete = complete }, b = {} }
    assert(registry:add('prompts', { name = 'p', description = 'x', get = function() end, args = args }))
    template({})
    local prompt = { type = 'prompt', name = 'p' }
    t.eq({ values = { 'x1', 'x2' }, total = 2 }, values_for(prompt, 'a', 'x', { b = 'y' }))
    t.eq({ { 'x', { b = 'y' } }, { values = {}, total = 0 } }, { seen, (values_for(prompt, 'b', 'x')) })
    t.eq({ values = {}, total = 0 }, values_for(prompt, 'c', 'x'))
    t.eq({ values = {}, total = 0 }, values_for({ type = 'resource', uri = 'x://{id}' }, 'id', ''))
  end)

  it('returns a hundred values at most, and reports whether there are more', function()
    local function completes(value)
      template(value)
      return values_for({ type = 'resource', uri = 'x://{id}' }, 'id', '')
    end
    local list = t.lines(100, '%d')
    local got = completes(list)
    list[101] = '101'
    t.eq({ 100, 100, nil }, { #got.values, got.total, got.hasMore })
    got = completes(list)
    t.eq({ 100, 101, true }, { #got.values, got.total, got.hasMore })
    got = completes({ values = { 'a' }, total = 7 })
    t.eq({ { 'a' }, 7, true }, { got.values, got.total, got.hasMore })
  end)

  it('refuses invalid requests', function()
    local function code(args) return failure('completion', 'completion', args).code end
    t.eq('not_found', code(request({ type = 'prompt', name = 'no' }, 'a', '')))
    t.eq('not_found', code(request({ type = 'resource', uri = 'x://no' }, 'a', '')))
    t.eq('not_found', code(request(5, 'a', '')))
    t.eq('validation_error', code(request({ type = 'prompt', name = 'p' }, 'a', 5)))
    t.eq('validation_error', code({}))
    template({ 5 })
    t.eq('invalid_output', code(request({ type = 'resource', uri = 'x://{id}' }, 'id', '')))
  end)
end)

it('a completion that does not answer tells its author what to write', function()
  local function completes(complete)
    local notes = require('notifications')
    notes.collect()
    local args = { { name = 'a', complete = complete } }
    assert(registry:add('prompts', { name = 'p', description = 'x', args = args, run = t.returns('x') }))
    local err = failure('completion', 'completion', {
      ref = { type = 'ref/prompt', name = 'p' },
      argument = { name = 'a', value = 'x' },
    })
    notes.restore()
    return err.message
  end

  t.matches('results are passed to `ctx%(result%)`', completes(function() return { 'a', 'b' } end))
  t.matches('write `ctx%({ "a", "b" }%)`', completes(t.answers('a')))
end)
