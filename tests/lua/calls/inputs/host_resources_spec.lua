local executors = require('executors')
local inputs = require('mcp-tools.calls.inputs')
local t = require('helpers')

local NAME = 'ai.nimblebrain/host-resources'
local READ = 'ai.nimblebrain/resources/read'
local LIST = 'ai.nimblebrain/resources/list'
--- As a client by the authors of the extension declares it.
local FULL = {
  read = { enabled = true, range = false, maxSize = 100 },
  list = { enabled = true },
  write = { enabled = false },
  schemes = { 'files', 'entities' },
}

--- Runs a tool for a client that declares this; returns its call and its requests.
local function setup(tool, declared, opts)
  local executor, registry = executors.new({ max_result = 1e6 })
  if type(tool) == 'function' then
    tool = { run = tool }
  end
  tool.name, tool.description = 'asks', 'x'
  assert(registry:add('tools', tool))
  local asked = {}
  local listener = { inputs = function(_, call) table.insert(asked, vim.json.decode(call.inputs.json).answer) end }
  local who = { host = 'test', session = 'one', capabilities = { extensions = { [NAME] = declared } } }
  local more = vim.tbl_extend('force', who, { listener = listener }, opts or {})
  return executor:execute('asks', {}, more), asked
end

--- The capabilities that a tool sees of a client that declares this.
local function seen(declared, opts)
  local call = setup(function(ctx)
    local host = ctx:host_resources()
    return { host.available, host.list_available, host:supports_scheme('files') }
  end, declared, opts)
  return call.outcome.value
end

--- A tool that reads one file and returns the result.
local function reads(uri)
  return function(ctx)
    local value, err = ctx:host_resources():read(uri or 'files://a')
    return { value = value, err = err }
  end
end

local function lists(filter)
  return function(ctx)
    local value, err = ctx:host_resources():list(filter)
    return { value = value, err = err }
  end
end

--- Answers the pending request with JSON text, and returns the result of the tool.
local function answered(call, text)
  t.eq('waiting_input', call.state)
  t.eq(true, inputs.answer(call, call.inputs.seq, ('{"answer": %s}'):format(text)))
  return call.outcome.value
end

local function result(text) return ('{"result": %s}'):format(text) end

--- Tests that results of the client are refused: JSON text → pattern of the message.
local function refuses(what, tool, cases)
  it('refuses ' .. what, function()
    for text, message in pairs(cases) do
      t.fails('validation_error', message, nil, answered(setup(tool(), FULL), result(text)).err)
    end
  end)
end

describe('the declaration of a client', function()
  it('is visible to tools', function()
    t.eq({ true, true, true }, seen(FULL))
    t.eq({ true, false, false }, seen({ read = { enabled = true } }))
    t.eq({ false, true, true }, seen({ list = { enabled = true }, schemes = { 'FILES' } }))
    t.eq({ true, false, true }, seen({ read = { enabled = true, schemes = { 'files' } } }))
    t.eq({ true, false, false }, seen({ read = { enabled = true, schemes = {} } }))
    t.eq({ true, false, false }, seen({ read = { enabled = true, maxSize = vim.NIL }, schemes = vim.NIL }))
  end)

  it('may be in `experimental`', function()
    local none = { capabilities = { experimental = { [NAME] = FULL } } }
    t.eq({ true, true, true }, seen(nil, none))
    none.capabilities.extensions = { [NAME] = 'yes' }
    t.eq({ true, true, true }, seen(nil, none))
    none.capabilities.extensions = { [NAME] = { read = { enabled = false } } }
    t.eq({ false, false, false }, seen(nil, none))
  end)

  it('is ignored if it is malformed', function()
    for _, declared in ipairs({
      'yes',
      true,
      {},
      { 'files' },
      { read = true, list = true },
      { read = { 'enabled' }, list = 'enabled' },
      { read = { enabled = 'yes' }, list = { enabled = 1 } },
      { read = { enabled = false } },
      { read = { enabled = true, schemes = 'files' } },
      { read = { enabled = true, schemes = { 1 } } },
      { read = { enabled = true }, schemes = { files = true } },
      { read = { enabled = true, maxSize = '10' } },
      { read = { enabled = true, maxSize = 0 } },
      { read = { enabled = true, maxSize = -1 } },
      { read = { enabled = true, maxSize = { 1 } } },
    }) do
      t.eq({ false, false, false }, seen(declared), vim.inspect(declared))
    end
    for _, capabilities in ipairs({ {}, { extensions = 'x' }, { extensions = { 1 } }, { experimental = vim.NIL } }) do
      t.eq({ false, false, false }, seen(nil, { capabilities = capabilities }))
    end
  end)

  it('applies in sessions only', function()
    local call = setup(reads(), FULL, { session = false })
    t.eq('capability_missing', call.outcome.value.err.code)
    t.eq(nil, call.outcome.value.err.required, 'nothing that it could declare would help')
    t.matches('a session', call.outcome.value.err.message)
    t.eq({ false, false, false }, seen(FULL, { session = false }))
  end)
end)

describe('a client without the capability', function()
  it('gets no request, for each method', function()
    for _, case in ipairs({
      { reads(), { list = { enabled = true } }, 'read' },
      { lists(), { read = { enabled = true } }, 'list' },
      { reads(), nil, 'read' },
      { lists(), 'nonsense', 'list' },
    }) do
      local call, asked = setup(case[1], case[2])
      t.eq({}, asked)
      local err = call.outcome.value.err
      t.fails('capability_missing', 'does not allow tools to ' .. case[3], nil, err)
      t.eq({ extensions = { [NAME] = { [case[3]] = { enabled = true } } } }, err.required)
    end
  end)

  it('gets no request for a scheme that it does not declare', function()
    for uri, text in pairs({
      ['http://x/'] = "no resources with the scheme 'http' %(it has files, entities%)",
      ['a.txt'] = 'must begin with a scheme',
      [''] = 'must begin with a scheme',
    }) do
      local call, asked = setup(reads(uri), FULL)
      t.eq({ {}, 'validation_error' }, { asked, call.outcome.value.err.code })
      t.matches(text, call.outcome.value.err.message)
    end
    local none = setup(reads(), { read = { enabled = true }, schemes = {} })
    t.matches('it has none', none.outcome.value.err.message)
    local _, asked = setup(reads('any://x'), { read = { enabled = true } })
    t.eq(1, #asked) -- it declares no schemes, so it decides itself
    _, asked = setup(reads('FILES://x'), FULL)
    t.eq(1, #asked)
  end)
end)

describe('reading', function()
  it('requests the URI and returns the contents', function()
    local call, asked = setup(reads(), FULL)
    t.eq({ { method = READ, params = { uri = 'files://a' } } }, asked)
    local contents = { { uri = 'files://a', mimeType = 'text/plain', text = 'hällo' } }
    t.eq({ value = { contents = contents } }, answered(call, result(vim.json.encode({ contents = contents }))))
  end)

  it('works with a callback too', function()
    local got
    local function execute(ctx)
      ctx:host_resources():read('files://a', function(value, err)
        got = { value, err }
        ctx('ended')
      end)
    end
    local call = setup({ execute = execute }, FULL)
    t.eq({ 'ended', { { contents = {} } } }, { answered(call, result('{"contents": []}')), got })
  end)

  refuses('invalid contents', reads, {
    ['{}'] = 'contents: is required',
    ['{"contents": {"a": 1}}'] = 'contents: must be array',
    ['{"contents": null}'] = 'contents: must be array',
    ['{"contents": ["a"]}'] = 'contents%[0%]: must be object',
    ['{"contents": [{"uri": "a", "text": ""}, {"text": "x"}]}'] = 'contents%[1%].uri: is required',
    ['{"contents": [{"uri": "a"}]}'] = 'must have either text or blob',
    ['{"contents": [{"uri": "a", "text": "", "blob": ""}]}'] = 'must have either text or blob',
    ['{"contents": [{"uri": "a", "text": 5}]}'] = 'text: must be string',
    ['{"contents": [{"uri": "a", "blob": false}]}'] = 'blob: must be string',
    ['{"contents": [{"uri": "a", "blob": "abc"}]}'] = 'blob: must be base64',
    ['{"contents": [{"uri": "a", "blob": "ab-_"}]}'] = 'blob: must be base64',
    ['{"contents": [{"uri": "a", "text": "", "mimeType": 1}]}'] = 'mimeType: must be string',
    ['[]'] = 'contents: is required',
    ['"text"'] = 'must be an object',
  })

  it('accepts files up to the limit in bytes', function()
    local function read(limit, contents, option)
      require('mcp-tools.config').setup(option and { limits = { resource = option } } or {})
      local call = setup(reads(), { read = { enabled = true, maxSize = limit } })
      return answered(call, result(vim.json.encode({ contents = contents })))
    end
    local function text(n) return { uri = 'files://a', text = ('x'):rep(n) } end
    local function blob(n) return { uri = 'files://a', blob = vim.base64.encode(('x'):rep(n)) } end
    for n = 9, 11 do
      t.ok(read(n, { blob(n) }).value)
      t.eq('too_large', read(n - 1, { blob(n) }).err.code)
    end
    t.ok(read(10, { text(4), text(6) }).value)
    local too_long = read(10, { text(4), blob(7) }).err
    t.fails('too_large', 'the file has 11 bytes, the limit is 10 %(its own maxSize%)', nil, too_long)
    t.ok(read(nil, { text(2048) }, 2048).value)
    t.fails('too_large', 'option limits.resource', nil, read(nil, { text(2049) }, 2048).err)
    t.eq('too_large', read(9999, { text(2049) }, 2048).err.code)
    require('mcp-tools.config').reset()
  end)

  it('maps the error codes of the client', function()
    for code, expected in pairs({
      [-32002] = 'not_found',
      [-32005] = 'too_large',
      [-32602] = 'validation_error',
      [-32601] = 'capability_missing',
      [-32001] = 'timeout',
      [-32603] = 'tool_error',
      [1] = 'tool_error',
    }) do
      local text = ('{"error": {"code": %d, "message": "no luck", "data": {"uri": "files://a"}}}'):format(code)
      local err = answered(setup(reads(), FULL), text).err
      t.eq(expected, err.code)
      t.matches('the client refused ai.nimblebrain/resources/read: no luck', err.message)
      t.eq(nil, err.retry_after_ms)
    end
    local text = '{"error": {"code": -32004, "message": "slowly", "data": {"retryAfterMs": 120}}}'
    local err = answered(setup(reads(), FULL), text).err
    t.eq({ 'rate_limited', 120 }, { err.code, err.retry_after_ms })
  end)
end)

describe('listing', function()
  it('sends the filter as the extension defines it', function()
    for _, case in ipairs({
      { nil, nil },
      { {}, nil },
      { { tags = {} }, nil },
      { { scheme = 'files' }, { scheme = 'files' } },
      {
        { scheme = 'files', mime_type = 'text/csv', tags = { 'a', 'b' } },
        { scheme = 'files', mimeType = 'text/csv', tags = { 'a', 'b' } },
      },
    }) do
      local _, asked = setup(lists(case[1]), FULL)
      t.eq({ { method = LIST, params = case[2] and { _meta = { filter = case[2] } } or nil } }, asked)
    end
  end)

  it('returns the list of the client', function()
    local resources = { { uri = 'files://a', name = 'a.csv', mimeType = 'text/csv' } }
    local text = result(vim.json.encode({ resources = resources }))
    t.eq({ value = { resources = resources } }, answered(setup(lists(), FULL), text))
    t.eq({ value = { resources = {} } }, answered(setup(lists(), FULL), result('{"resources": []}')))
  end)

  refuses('an invalid list of resources', lists, {
    ['{}'] = 'resources: is required',
    ['{"resources": {"a": 1}}'] = 'resources: must be array',
    ['{"resources": [1]}'] = 'resources%[0%]: must be object',
    ['{"resources": [{"uri": "a", "name": "a"}, {"uri": "a"}]}'] = 'resources%[1%]%.name: is required',
    ['{"resources": [{"name": "a"}]}'] = 'resources%[0%]%.uri: is required',
  })

  it('fails with an invalid filter', function()
    for message, filter in pairs({
      ["unknown field 'mimeType'"] = { mimeType = 'x' },
      ['expected string'] = { scheme = 1 },
      ['expected table'] = { tags = 'a' },
      ['must be a list of strings'] = { tags = { 1 } },
    }) do
      local call = setup(lists(filter), FULL)
      t.fails('execution_error', message, nil, call.outcome.error)
    end
  end)
end)
