-- every Neovim
-- Schemas beyond the official suite: faults, error messages, unions, empty tables, defaults and nulls.

local schema = require('mcp-tools.schema')
local t = require('helpers')

---@return mcp-tools.Validator
local function compile(json_schema) return t.ok(schema.compile(json_schema)) end

--- Errors as `field: message` lines.
local function errors_of(json_schema, value)
  local _, errors = compile(json_schema):check(value)
  return vim.tbl_map(function(e) return e.field .. ': ' .. e.message end, errors or {})
end

local function faults_of(json_schema)
  local validator, faults = schema.compile(json_schema)
  t.eq(nil, validator)
  return vim.tbl_map(function(f) return f.field .. ': ' .. f.message end, faults)
end

describe('errors', function()
  it('are listed all at once, each property separately', function()
    local s = {
      type = 'object',
      properties = {
        items = { type = 'array', items = { type = 'object', properties = { name = { type = 'string' } } } },
        mode = { enum = { 'a', 'b' } },
        n = { type = 'integer', minimum = 1 },
        s = { type = 'string', maxLength = 2 },
      },
      required = { 'n', 'path', 'line' },
      additionalProperties = false,
    }
    local value = { items = { { name = 'x' }, { name = 5 } }, mode = 'c', mood = 1, zzzzzzzz = 1, n = 0, s = 'äöü' }
    t.eq({
      'path: is required',
      'line: is required',
      'items[1].name: must be string, got 5',
      'mode: must be one of "a", "b"',
      'n: must be at least 1',
      's: must have at most 2 characters',
      'mood: is not allowed, did you mean mode?',
      'zzzzzzzz: is not allowed (allowed: items, mode, n, s)',
    }, errors_of(s, value))
  end)

  it('name the root and unusual properties', function()
    t.eq({ '(root): must be object, got array' }, errors_of({ type = 'object' }, { 1 }))
    local nested = { properties = { ['a.b'] = { required = { 'c' } } } }
    t.eq({ '["a.b"].c: is required' }, errors_of(nested, { ['a.b'] = { x = 1 } }))
    t.eq({ '["a/\\"b"]: is not allowed' }, errors_of({ additionalProperties = false }, { ['a/"b'] = 1 }))
  end)

  it('have one message for a value of the wrong type', function()
    local s = { type = 'string', enum = { 'x' }, minLength = 3 }
    t.eq({ '(root): must be "x"' }, errors_of(s, 5))
    t.eq({ '(root): must be integer or null, got 1.5' }, errors_of({ type = { 'integer', 'null' } }, 1.5))
  end)

  it('are not repeated', function()
    local part = { required = { 'a' } }
    t.eq({ 'a: is required' }, errors_of({ allOf = { part, { required = { 'a' } } }, required = { 'a' } }, { b = 1 }))
  end)

  it('are limited in number', function()
    local lines = errors_of({ items = { type = 'string' } }, vim.fn.range(150))
    t.eq(101, #lines)
    t.matches('more faults', lines[101])
  end)

  it('name keys that are not strings, and numbers that are not finite', function()
    t.eq({ 'true: is not allowed' }, errors_of({ additionalProperties = false }, { [true] = 1 }))
    t.eq({ 'true: must be string, got 1' }, errors_of({ additionalProperties = { type = 'string' } }, { [true] = 1 }))
    t.eq({}, errors_of({ items = false }, {}))
    t.eq({ '[1]: is not allowed' }, errors_of({ prefixItems = { { type = 'integer' } }, items = false }, { 1, 2 }))
    t.eq({}, errors_of({ uniqueItems = true }, { 0 / 0, 0 / 0, '1', 1, '[]', {} }))
    local equal = { { a = 1, b = { 2 } }, {}, { b = { 2 }, a = 1 } }
    t.eq({ '(root): items must differ: [2] repeats [0]' }, errors_of({ uniqueItems = true }, equal))
  end)

  it('survive a value that contains itself', function()
    local value = {}
    value.child = value
    local ok, errors = compile({ properties = { child = { ['$ref'] = '#' } } }):check(value)
    t.eq(false, ok)
    t.matches('nested deeper than', errors[1].message)
  end)
end)

describe('unions', function()
  local s = {
    anyOf = {
      { ['$ref'] = '#/$defs/circle' },
      { type = 'array', items = { type = 'number' } },
      { type = { 'string', 'null' }, maxLength = 1 },
    },
    ['$defs'] = { circle = { type = 'object', properties = { r = { type = 'number' } }, required = { 'r' } } },
  }
  for what, case in pairs({
    ['report the only branch of that type'] = { s, { 'x' }, '[0]: must be number, got string' },
    ['report it through a reference'] = { s, { side = 1 }, 'r: is required' },
    ['name the types, if none fits'] = { s, 5, '(root): must be object or array or string or null, got 5' },
    ['say how many alternatives there are'] = {
      { oneOf = { { required = { 'a' } }, { required = { 'b' } } } },
      { c = 1 },
      '(root): fits none of 2 alternatives',
    },
    ['say which two match, if only one may'] = {
      { oneOf = { { type = 'number' }, { minimum = 1 } } },
      5,
      '(root): must match exactly one of 2 alternatives, matches 1 and 2',
    },
  }) do
    it(what, function() t.eq({ case[3] }, errors_of(case[1], case[2])) end)
  end
end)

describe('empty tables', function()
  it('from Lua match objects and arrays', function()
    t.ok(compile({ type = 'object' }):check({}) and compile({ type = 'array' }):check({}))
    t.ok(not compile({ type = 'array' }):check(vim.empty_dict()))
  end)

  it('from a client are arrays unless marked', function()
    t.ok(not compile({ type = 'object' }):check({}, { strict = true }))
    t.ok(compile({ type = 'object' }):check(vim.empty_dict(), { strict = true }))
  end)
end)

describe('faults of a schema', function()
  it('name each wrong keyword', function()
    local properties = { a = { type = 5 }, b = { enum = { x = 1 } }, c = { type = 'int' } }
    t.eq({
      'properties.a.type: must be a type (a string) or a list of types',
      'properties.b.enum: must be a list',
      'properties.c.type: "int" is not a type (types: array, boolean, integer, null, number, object, string)',
      'required: must be a list of names',
    }, faults_of({ properties = properties, required = true }))
  end)

  it('name what is not supported', function()
    t.matches('unevaluatedProperties: not supported', faults_of({ unevaluatedProperties = false })[1])
    t.matches('%$dynamicRef: not supported', faults_of({ items = { ['$dynamicRef'] = '#x' } })[1])
    for _, reference in ipairs({ 'https://example.com/s.json', '#anchor', 'other.json#/a' }) do
      t.matches('is not supported', faults_of({ ['$ref'] = reference })[1])
    end
    t.matches('a.%$id: not supported', faults_of({ properties = { a = { ['$id'] = 'a.json' } } })[1])
    compile({ ['$id'] = 'https://example.com/s.json', properties = { ['$id'] = { type = 'string' } } })
  end)

  it('name references that are dangling or circular', function()
    local dangling = { properties = { a = { ['$ref'] = '#/$defs/x' } } }
    t.matches('properties.a.%$ref: "#/$defs/x" does not exist', faults_of(dangling)[1])
    t.matches('is an endless reference', faults_of({ allOf = { { ['$ref'] = '#' } } })[1])
  end)

  it('name references to values that are not schemas', function()
    for _, target in ipairs({ '#/shapes/a', '#/properties', '#/default' }) do
      local _, faults = schema.compile({
        properties = { a = { ['$ref'] = target } },
        shapes = { a = { type = 'string' } },
        default = { a = 1 },
      })
      t.eq('properties.a.$ref', faults and faults[1].field)
      t.matches('is not a schema$', faults[1].message)
    end
  end)

  it('name values that are not data', function()
    t.matches('default: is a function, not data', faults_of({ default = print })[1])
    local nan = { properties = { a = { default = 0 / 0 } } }
    t.matches('properties.a.default: must be a finite number', faults_of(nan)[1])
    t.matches('description: is not UTF%-8', faults_of({ description = '\255' })[1])
    t.matches('properties: has a name that is not UTF%-8', faults_of({ properties = { ['\255'] = true } })[1])
    local loop = {}
    loop.properties = { child = loop }
    t.matches('properties.child: contains itself; use %$ref', faults_of(loop)[1])
  end)

  it('do not include unsupported patterns, which match everything and are listed', function()
    local validator =
      compile({ properties = { a = { pattern = '\\bx' } }, patternProperties = { ['(x)\\1'] = { type = 'string' } } })
    t.ok(validator:check({ a = 'y', b = 1 }))
    t.eq({ 'patternProperties["(x)\\\\1"]', 'properties.a.pattern' }, t.field('field', validator.unchecked))
    -- A property that such a pattern may have matched is allowed.
    t.ok(compile({ patternProperties = { ['\\bx'] = true }, additionalProperties = false }):check({ y = 1 }))
  end)
end)

local NIL = vim.NIL

describe('fill', function()
  local s = {
    type = 'object',
    properties = {
      n = { type = 'integer', default = 3 },
      list = { type = 'array', default = {} },
      opts = { type = 'object', default = {}, properties = { depth = { type = 'integer', default = 7 } } },
      deep = { type = 'object', properties = { x = { type = 'boolean', default = false } } },
      rows = { type = 'array', items = { type = 'object', properties = { w = { type = 'integer', default = 1 } } } },
      maybe = { type = { 'string', 'null' }, default = 'd' },
      plain = { type = 'string' },
      must = { type = 'string' },
    },
    required = { 'n', 'must' },
  }

  it('adds defaults to absent properties at every level', function()
    local filled = compile(s):fill({ must = 'x', deep = {}, rows = { {}, { w = 5 } } })
    t.eq({
      n = 3,
      list = {},
      opts = { depth = 7 },
      deep = { x = false },
      rows = { { w = 1 }, { w = 5 } },
      maybe = 'd',
      must = 'x',
    }, filled)
    t.eq('[]', vim.json.encode(filled.list))
    t.ok(compile(s):check(filled))
  end)

  it('changes its argument, and copies defaults', function()
    local validator = compile(s)
    local value = { must = 'x' }
    t.ok(rawequal(value, validator:fill(value)))
    value.opts.depth = 99
    t.eq(7, validator:fill({ must = 'y' }).opts.depth)
  end)

  it('drops a null that is neither allowed nor required', function()
    local validator = compile(s)
    local value = validator:fill({ n = NIL, plain = NIL, maybe = NIL, must = NIL, deep = { x = NIL } })
    t.eq({ n = 3, list = {}, opts = { depth = 7 }, maybe = NIL, must = NIL, deep = { x = false } }, value)
    local _, errors = validator:check(value)
    t.eq({ { field = 'must', message = 'must be string, got null' } }, errors)
  end)

  it('follows references and items', function()
    local node = {
      ['$defs'] = {
        node = { type = 'object', properties = { size = { default = 1 }, next = { ['$ref'] = '#/$defs/node' } } },
      },
      properties = { tree = { ['$ref'] = '#/$defs/node' }, list = { items = { ['$ref'] = '#/$defs/node' } } },
    }
    local value = { tree = { next = vim.empty_dict() }, list = { { a = 0 } } }
    local expected = { tree = { size = 1, next = { size = 1 } }, list = { { size = 1, a = 0 } } }
    t.eq(expected, compile(node):fill(value))
  end)

  it('fills additional properties', function()
    local validator =
      compile({ properties = { a = true }, additionalProperties = { properties = { m = { default = 2 } } } })
    t.eq({ a = { b = 0 }, y = { m = 2, b = 0 } }, validator:fill({ a = { b = 0 }, y = { b = 0 } }))
  end)

  it('does not change values inside unions', function()
    local branch = { type = 'object', properties = { kind = { const = 'b' }, p = { default = 'x' } } }
    local value = { shape = { kind = 'b' } }
    local validator = compile({ properties = { shape = { oneOf = { branch, { type = 'null' } } } } })
    t.eq({ shape = { kind = 'b' } }, validator:fill(value))
    t.ok(validator:check(value))
  end)

  it('ends with a recursive default', function()
    local loop = { type = 'object', properties = { child = { ['$ref'] = '#', default = vim.empty_dict() } } }
    t.ok(#vim.json.encode(compile(loop):fill({})) < 40)
  end)

  it('ends with a value that contains itself', function()
    local value = {}
    value.child = value
    t.eq(1, compile({ properties = { child = { ['$ref'] = '#' }, n = { default = 1 } } }):fill(value).n)
  end)

  it('does not treat an empty array from a client as an object', function()
    local validator = compile({ properties = { o = { type = 'object', properties = { n = { default = 1 } } } } })
    t.eq({ o = { n = 1 } }, validator:fill({ o = {} }))
    t.eq({ o = { n = 1 } }, validator:fill({ o = vim.empty_dict() }, { strict = true }))
    local value = validator:fill({ o = {} }, { strict = true })
    t.eq({ nil, false }, { next(value.o), (validator:check(value, { strict = true })) })
  end)

  it('encodes empty defaults as their schema requires', function()
    local validator = compile({
      ['$defs'] = { o = { type = 'object' } },
      properties = { a = { ['$ref'] = '#/$defs/o', default = {} }, b = { type = 'array', default = {} } },
    })
    local filled = validator:fill(vim.empty_dict(), { strict = true })
    t.ok(validator:check(filled, { strict = true }))
    t.matches('"a":{}', vim.json.encode(filled))
    t.matches('"b":%[%]', vim.json.encode(filled))
  end)

  it('skips defaults that do not match their own schema, and reports them', function()
    local validator =
      compile({ properties = { a = { type = 'string', default = 5 }, b = { type = 'string', default = NIL } } })
    t.eq({ c = 1 }, validator:fill({ c = 1 }))
    t.eq({ 'properties.a.default' }, t.field('field', validator:misfits()))
    local both = { allOf = { { type = 'array' }, { properties = { x = true } } }, default = {} }
    t.eq(1, #compile({ properties = { a = both } }):misfits())
  end)

  it('does not change other values than objects', function()
    local validator = compile(s)
    for _, value in ipairs({ 5, 'x', false, NIL }) do
      t.eq(value, validator:fill(value))
    end
    t.eq({ 1, 2 }, validator:fill({ 1, 2 }))
  end)
end)
