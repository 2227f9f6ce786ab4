local content = require('mcp-tools.content')
local errors = require('mcp-tools.errors')
local results = require('mcp-tools.calls.result')
local json = require('mcp-tools.util.json')
local t = require('helpers')
local utf8 = require('mcp-tools.util.utf8')

local LIMIT = 1000
local PLAIN = {}

local function payload(value, promise, limit) return results.payload(value, promise or PLAIN, limit or LIMIT) end

describe('JSON of a value', function()
  local exact = { math.pi, 2 ^ 53 + 2, 1763769600123456, 0.1 + 0.2, 1 / 3, 2 ^ 54 + 4, 1e300, 5e-324, -1.5 }

  it('keeps every digit of a number, alone and in a list', function()
    for _, number in ipairs(vim.list_extend({ 2 ^ -24, -2 ^ -24, 2 ^ -1074, 2 ^ 1023 }, exact)) do
      t.eq(number, tonumber(json.encode(number)))
      t.eq(number, tonumber((json.encode({ number }):sub(2, -2))))
    end
  end)

  it('has no fraction or exponent in whole numbers, where clients expect an integer', function()
    local numbers = { 1763769600123456, 2 ^ 53 + 2, 2 ^ 54 + 4 }
    t.eq('[1763769600123456,9007199254740994,18014398509481988]', json.encode(numbers))
  end)

  it('distinguishes lists, objects and null beside exact numbers', function()
    local value = { a = { 1, nil, 0.1 + 0.2 }, b = {}, c = vim.empty_dict(), d = vim.NIL, e = 'é"\n' }
    local expected = vim.tbl_extend('force', value, { a = { 1, vim.NIL, 0.1 + 0.2 } })
    t.eq(expected, vim.json.decode(json.encode(value)))
    t.matches('"c":{}', json.encode(value))
    t.matches('"b":%[%]', json.encode(value))
  end)

  it('writes holes as nulls and mixed tables as objects', function()
    t.eq('[1,null,3]', json.encode({ 1, nil, 3 }))
    t.eq({ ['1'] = 'x', a = 'y' }, vim.json.decode(json.encode({ 'x', a = 'y' })))
  end)

  local cycle = {}
  cycle.inner = { cycle }
  local deep = {}
  local at = deep
  for _ = 1, 100 do
    at[1] = {}
    at = at[1]
  end
  local refused = {
    { 'a function', { a = { print } }, 'result%.a%[1%]: a function' },
    { 'userdata', { a = vim.uv.new_timer() }, 'result%.a: userdata' },
    { 'a thread', { coroutine.create(print) }, 'result%[1%]: a thread' },
    { 'NaN', { x = 0 / 0 }, 'result%.x: not a finite number' },
    { 'infinity', { x = { y = 1 / 0 } }, 'result%.x%.y: not a finite number' },
    { 'minus infinity', -1 / 0, 'result: not a finite number' },
    { 'a cycle', cycle, 'result%.inner%[1%]: a table that contains itself' },
    { 'a boolean key', { [true] = 1 }, 'result%.true: a boolean as a key' },
    { 'equal keys', { [1] = 1, ['1'] = 2 }, 'result%[1%]: both the number 1 and the string "1"' },
    { 'a list that is all holes', { [100] = 1 }, 'too many holes' },
    { 'what is nested too deep', deep, 'nested deeper than 100 levels' },
  }
  for _, case in ipairs(refused) do
    it('refuses ' .. case[1] .. ' and names the place', function()
      t.fails('not_serializable', case[3], json.encode(case[2]))
      t.eq('[1]', json.encode({ 1 })) -- the next value is not affected
    end)
  end

  it('writes a slash unescaped, on every version', function()
    local path = '/home/x/\\/"y"/'
    local text = '"/home/x/\\\\/\\"y\\"/"'
    t.eq({ text, '[' .. text .. ']' }, { json.encode(path), (json.encode({ path })) })
    t.eq('{' .. text .. ':[' .. text .. ',0.30000000000000004]}', json.encode({ [path] = { path, 0.1 + 0.2 } }))
    local long = path:rep(5000)
    t.eq({ long }, vim.json.decode(json.encode({ long })))
    t.ok(not json.encode({ long }):find('[^\\]\\/'))
  end)

  it('accepts a table in two places', function()
    local shared = { 1 }
    t.eq('[[1],[1]]', json.encode({ shared, shared }))
  end)

  it('accepts 100 levels', function()
    local value = 1
    for _ = 1, 100 do
      value = { value }
    end
    t.eq(202 - 1, #assert(json.encode(value)))
  end)
end)

describe('a payload', function()
  it('is text for a string, JSON for data, empty for nil', function()
    t.eq({ kind = 'text', text = 'hi' }, payload('hi'))
    t.eq({ kind = 'json', text = '{"a":1}' }, payload({ a = 1 }))
    t.eq({ kind = 'json', text = 'false' }, payload(false))
    t.eq({ { kind = 'json', text = 'null' }, { kind = 'empty' } }, { payload(vim.NIL), (payload(nil)) })
  end)

  it('never treats data as content', function()
    t.eq('json', payload({ type = 'text', text = 'x' }).kind)
    t.eq('json', payload({ { type = 'text', text = 'x' } }).kind)
  end)

  it('encodes every kind of content as MCP defines it', function()
    local result = payload({
      content.text('a'),
      content.image('\0\1', 'image/png'),
      content.audio('\2', 'audio/wav'),
      content.resource({ uri = 'x://t', mime_type = 'text/plain', text = 'T' }),
      content.resource({ uri = 'x://b', blob = '\255' }),
      content.resource_link({ uri = 'x://l', name = 'l', mime_type = 'text/plain' }),
    })
    t.eq('content', result.kind)
    t.eq({
      { type = 'text', text = 'a' },
      { type = 'image', data = 'AAE=', mimeType = 'image/png' },
      { type = 'audio', data = 'Ag==', mimeType = 'audio/wav' },
      { type = 'resource', resource = { uri = 'x://t', mimeType = 'text/plain', text = 'T' } },
      { type = 'resource', resource = { uri = 'x://b', blob = '/w==' } },
      { type = 'resource_link', uri = 'x://l', name = 'l', mimeType = 'text/plain' },
    }, vim.json.decode(result.text).content)
  end)

  it('contains structured data, the error flag and metadata of content.result', function()
    local text = content.text('no')
    local result =
      payload(content.result({ content = text, structured = { a = 1 }, is_error = true, meta = { x = 2 } }))
    t.eq({
      content = { { type = 'text', text = 'no' } },
      structuredContent = { a = 1 },
      isError = true,
      _meta = { x = 2 },
    }, vim.json.decode(result.text))
  end)

  it('refuses invalid content where it is created', function()
    t.raises('content%.text: text must be a string', function() content.text(5) end)
    t.raises('exactly one of text and blob', function() content.resource({ uri = 'x://' }) end)
    local bad = { content.text('a'), { type = 'text' } }
    t.raises('content%[2%] is not a content value', function() content.result({ content = bad }) end)
  end)

  it('is limited in the bytes of its content', function()
    t.ok(payload(('x'):rep(LIMIT)))
    t.fails('too_large', nil, payload(('x'):rep(LIMIT + 1)))
    t.ok(payload(content.image(('x'):rep(750), 'image/png')))
    t.fails('too_large', nil, payload(content.image(('x'):rep(751), 'image/png')))
  end)
end)

describe('a result with an output schema', function()
  local schema = {
    type = 'object',
    properties = { map = { type = 'object' }, list = { type = 'array', items = { type = 'object' } } },
    required = { 'map' },
  }
  local promise = { output_schema = schema, check_output = require('mcp-tools.schema').compile(schema) }

  it('is structured, with empty tables as objects or lists as the schema requires', function()
    local result = payload({ map = {}, list = { {} } }, promise)
    t.eq(true, result.structured)
    t.matches({ '"map":{}', '"list":%[{}%]' }, result.text)
  end)

  it('has empty objects behind references, choices and lists of types in the schema', function()
    local wide = {
      type = 'object',
      properties = {
        ref = { ['$ref'] = '#/$defs/o' },
        all = { allOf = { { ['$ref'] = '#/$defs/o' }, { description = 'x' } } },
        any = { anyOf = { { type = 'string' }, { ['$ref'] = '#/$defs/o' } } },
        one = { oneOf = { { type = 'array', minItems = 1 }, { type = 'object' } } },
        types = { type = { 'object', 'null' } },
        list = { type = { 'array', 'null' } },
        either = { type = { 'array', 'object' } },
        kinds = {
          type = 'array',
          items = {
            oneOf = {
              { properties = { kind = { const = 'a' }, v = { type = 'object' } }, required = { 'kind' } },
              { properties = { kind = { const = 'b' }, v = { type = 'array' } }, required = { 'kind' } },
            },
          },
        },
      },
      additionalProperties = { type = { 'object', 'string' } },
      ['$defs'] = { o = { type = 'object', properties = { again = { ['$ref'] = '#/$defs/o' } } } },
    }
    local empty = {}
    local value = {
      ref = { again = { again = {} } },
      all = {},
      any = {},
      one = {},
      types = empty,
      list = empty,
      either = {},
      kinds = { { kind = 'a', v = {} }, { kind = 'b', v = {} } },
      other = {},
    }
    local before = vim.deepcopy(value)
    local result = t.ok(payload(value, { check_output = require('mcp-tools.schema').compile(wide) }))
    local o, dict = vim.json.decode(result.text), vim.empty_dict()
    local function is_object(v) return getmetatable(v) == getmetatable(dict) and next(v) == nil end
    for _, name in ipairs({ 'all', 'any', 'one', 'types', 'other' }) do
      t.ok(is_object(o[name]), name .. ' is a list')
    end
    t.ok(is_object(o.ref.again.again) and is_object(o.kinds[1].v))
    t.matches({ '"list":%[%]', '"either":%[%]' }, result.text)
    t.ok(not is_object(o.kinds[2].v))
    t.eq(nil, getmetatable(value.ref.again.again), 'the value of the tool was changed')
    t.eq(before, value)
  end)

  it('that contains itself is refused with its path', function()
    local value = { map = {}, list = {} }
    value.list[1] = value
    t.fails('not_serializable', 'result%.list%[1%]: a table that contains itself', payload(value, promise))
  end)

  it('that does not match its schema is refused', function()
    local _, err = payload({ list = {} }, promise)
    t.eq({ 'invalid_output', 'map' }, { err.code, err.errors[1].field })
    for _, value in ipairs({ 'text', vim.NIL }) do
      t.eq('invalid_output', select(2, payload(value ~= vim.NIL and value or nil, promise)).code)
    end
  end)

  it('may be an error without data', function()
    local failure = content.result({ content = content.text('no'), is_error = true })
    t.ok(payload(failure, promise))
  end)
end)

describe('bytes that are not UTF-8', function()
  it('are found by their path', function()
    t.eq('result.lines[2]', results.bad_bytes({ lines = { 'ok é', 'a\255' } }))
    t.eq('result', results.bad_bytes('\237\160\128'))
    t.eq(nil, results.bad_bytes({ 'é', '𝄞', { a = 'ok' } }))
    t.eq('result.content[1].text', results.bad_bytes(content.result({ content = content.text('\192\128') })))
  end)

  it('are repaired one by one', function()
    local cases = {
      { 'plain', 'plain', false },
      { 'é𝄞', 'é𝄞', false },
      { 'a\255b\254', 'a\239\191\189b\239\191\189', true },
      { '\237\160\128', ('\239\191\189'):rep(3), true },
      { '\195', '\239\191\189', true },
    }
    for _, case in ipairs(cases) do
      local text, lossy = utf8.repair(case[1])
      t.eq({ case[2], case[3] }, { text, lossy })
    end
  end)
end)

describe('content blocks', function()
  it('are limited in number', function()
    local blocks = t.list(300000, function() return content.text('') end)
    t.fails('too_large', '300000 content blocks, the limit is 10000', results.payload(blocks, {}, 10 * 1024 * 1024))
    t.eq('too_large', select(2, results.payload(content.result({ content = blocks }), {}, 10 * 1024 * 1024)).code)
    t.ok(results.payload(vim.list_slice(blocks, 1, 10000), {}, 10 * 1024 * 1024))
  end)

  it('include structured data, metadata and all fields of a link in their size', function()
    local long = ('x'):rep(LIMIT)
    for _, result in ipairs({
      { content = {}, structured = { a = long } },
      { content = {}, meta = { a = long } },
      { content = { content.resource_link({ uri = 'a:b', name = 'n', description = long }) } },
    }) do
      t.fails('too_large', nil, results.payload(content.result(result), PLAIN, LIMIT))
      t.ok(results.payload(content.result(result), PLAIN, LIMIT + 50))
    end
  end)
end)

describe('errors', function()
  it('have a code, a message and faults', function()
    t.eq({ code = 'stale', message = 'changed' }, errors.new('stale', 'changed'))
    local faults = { { field = 'n', message = 'is required' } }
    t.eq(faults, errors.new(errors.codes.validation_error, 'bad', faults).errors)
  end)

  it('refuse a code that is not in the list', function()
    t.raises('unknown error code: oops', function() errors.new('oops', 'x') end)
  end)

  it('are distinguished from other values', function()
    t.ok(errors.is(errors.new('busy', 'later')))
    for _, value in ipairs({ 'busy', 5, {}, { code = 'busy' }, { code = 'oops', message = 'x' }, vim.NIL }) do
      t.ok(not errors.is(value))
    end
  end)

  it('are sorted by what the client can do about them', function()
    local sorts = { validation_error = 'validation', unknown_tool = 'validation' }
    sorts.tool_error, sorts.not_found, sorts.stale = 'domain', 'domain', 'domain'
    for code in pairs(errors.codes) do
      local err = errors.new(code, 'x')
      t.eq({ code, sorts[code] == 'validation' }, { code, errors.is_validation_failure(err) })
      t.eq({ code, sorts[code] == 'domain' }, { code, errors.is_domain_failure(err) })
    end
    for _, value in ipairs({ 'tool_error', 5, {}, { code = 'tool_error' } }) do
      t.ok(not errors.is_validation_failure(value) and not errors.is_domain_failure(value))
    end
    t.ok(not errors.is_domain_failure(nil))
  end)
end)
