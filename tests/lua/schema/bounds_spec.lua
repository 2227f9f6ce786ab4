-- slow
-- Limits of a check, for any schema and any value: its time and the length of its messages.

local tool_kind = require('mcp-tools.calls.kinds.tool')
local definition = require('mcp-tools.registry.definition.tool')
local schema = require('mcp-tools.schema')
local t = require('helpers')

---@return mcp-tools.Validator
local function compile(json_schema) return t.ok(schema.compile(json_schema)) end

local in_time = t.fast -- without limits these take seconds or never end

--- Asserts that a check refuses a value.
local function is_too_large(_, err) t.fails(nil, 'is too large', nil, err) end

local function check_in_time(validator, value)
  return in_time(function() return validator:check(value, { strict = true }) end)
end

local function fill_and_check(validator, value)
  return in_time(function() return validator:check(validator:fill(value, { strict = true }), { strict = true }) end)
end

local function total_length(faults)
  local sum = 0
  for _, fault in ipairs(faults) do
    sum = sum + #fault.field + #fault.message
  end
  return sum
end

--- The normalized definition of a tool, or its faults.
local function tool(input_schema)
  return definition.normalize({ name = 'x', description = 'd', execute = function() end, input_schema = input_schema })
end

describe('a client that sends', function()
  it('400 000 additional properties gets the first errors, in time', function()
    local value = {}
    for i = 1, 400000 do
      value['p' .. i] = 1
    end
    local known = {}
    for i = 1, 50 do
      known['property' .. i] = { type = 'string' }
    end
    local validator = compile({ type = 'object', properties = known, additionalProperties = false })
    local _, faults = check_in_time(validator, value)
    t.eq({ 101, '(root)' }, { #faults, faults[101].field })
    _, faults = check_in_time(compile({ propertyNames = { maxLength = 1 } }), value)
    t.eq(101, #faults)
  end)

  it('many items that match no branch gets the first errors, in time', function()
    local value = t.list(200000, function(i) return { kind = 'z', n = i } end)
    local validator = compile({
      type = 'array',
      items = {
        anyOf = {
          { type = 'object', properties = { kind = { const = 'a' }, a = { type = 'string' } }, required = { 'a' } },
          { type = 'object', properties = { kind = { enum = { 'b', 'c' } } }, required = { 'b' } },
          { type = 'object', properties = { kind = { type = 'string' } }, required = { 'c' } },
        },
      },
    })
    local _, faults = fill_and_check(validator, value)
    t.eq({ 101, 'fits none of 3 alternatives' }, { #faults, faults[1].message })
  end)

  it('names of megabytes gets them truncated', function()
    local long = ('n'):rep(3900000)
    local closed =
      t.ok(tool({ type = 'object', properties = { n = { type = 'string' } }, additionalProperties = false }))
    local _, err = in_time(function() return tool_kind.arguments(closed, { [long] = 1 }, true) end)
    t.eq(1, #err.errors)
    t.ok(#err.message < 500, #err.message)
    t.matches('n…"%]: is not allowed', err.message)
  end)

  it('long names at every level gets truncated paths', function()
    local value = 1
    for i = 1, 90 do
      value = { [('level %d '):format(i):rep(20)] = value }
    end
    local _, faults = compile({ additionalProperties = { ['$ref'] = '#' }, type = 'object' }):check(value)
    t.eq(1, #faults)
    t.ok(total_length(faults) < 400, faults[1].field)
    t.matches('^%["level 90 .*…%S*level 1 ', faults[1].field)
  end)

  it('the deepest possible value, for a schema that refers to itself in two ways, gets an answer', function()
    local validator = compile({
      ['$defs'] = {
        node = {
          anyOf = {
            { properties = { child = { ['$ref'] = '#/$defs/node' }, a = { type = 'string' } } },
            { properties = { child = { ['$ref'] = '#/$defs/node' }, a = { type = 'boolean' } } },
          },
        },
      },
      ['$ref'] = '#/$defs/node',
    })
    local value = { a = 1 }
    for _ = 1, 95 do
      value = { child = value }
    end
    local ok, faults = in_time(function() return validator:check(value) end)
    t.eq(false, ok)
    t.matches('is too large to be checked', faults[1].message)
    t.fails(nil, 'is too large to be checked', tool_kind.arguments({ name = 'x', check = validator }, value, true))
  end)

  it('nested lists of one item, which must be unique, gets an answer', function()
    local value = { ('x'):rep(3900000) }
    for i = 1, 95 do
      value = { value, i }
    end
    local validator = compile({ uniqueItems = true, items = { ['$ref'] = '#' } })
    local _, faults = check_in_time(validator, value)
    t.matches('is too large to be checked', faults[1].message)
  end)

  it('too many small objects which must be unique is refused before they are compared', function()
    local validator = compile({ type = 'array', uniqueItems = true })
    local function objects(n)
      local value = t.list(n, function(i) return { x = i } end)
      return value
    end
    t.ok(validator:check(objects(20000)))
    local many = objects(100000)
    local _, faults = validator:check(many)
    t.matches('is too large to be checked', faults[1].message)
  end)

  it('empty objects for a schema with many defaults does not fill the memory', function()
    local properties = {}
    for i = 1, 100 do
      properties['p' .. i] = { type = 'string', default = 'some text' }
    end
    local validator = compile({ type = 'array', items = { type = 'object', properties = properties } })
    local value = t.list(100000, function() return vim.empty_dict() end)
    is_too_large(in_time(validator.fill, validator, value, { strict = true }))
  end)
end)

it('a million numbers are checked in time', function()
  local validator = compile({ type = 'array', items = { type = 'integer' } })
  t.eq(true, (fill_and_check(validator, vim.fn.range(1000000))))
end)

describe('a pattern', function()
  local validator = compile({
    type = 'object',
    properties = {
      slow = { type = 'string', pattern = 'a{0,100}a{0,100}b' },
      flat = { type = 'string', pattern = '^[a-z]{1,30000}b' },
      line = { type = 'string', pattern = '^[^\\n]+$' },
      none = { ['not'] = { pattern = 'a{0,100}a{0,100}b' } },
    },
    patternProperties = { ['(a{0,30}a{0,30})*!'] = { type = 'string' } },
  })

  it('is matched against text of usual length', function()
    local fitting = { slow = ('a'):rep(100) .. 'b', flat = ('a'):rep(1000) .. 'b', line = ('é'):rep(50000) }
    for field, text in pairs(fitting) do
      t.ok(validator:check({ [field] = text }), field)
    end
    local _, faults = validator:check({ slow = ('a'):rep(100) })
    t.eq({ { field = 'slow', message = 'must match the pattern a{0,100}a{0,100}b' } }, faults)
  end)

  for field, text in pairs({ slow = ('a'):rep(10000), flat = ('a'):rep(200000), none = ('a'):rep(10000) }) do
    it('refuses longer text and is named: ' .. field, function()
      local ok, faults = check_in_time(validator, { [field] = text })
      t.eq({ false, field }, { ok, faults[1].field })
      t.matches('^has too much text to be matched against the pattern %S+$', faults[1].message)
    end)
  end

  it('for names has the same limit', function()
    local ok, faults = in_time(function() return validator:check({ [('a'):rep(100000)] = 1 }) end)
    t.eq(false, ok)
    t.matches('to be matched against the pattern %(a', faults[1].message)
  end)

  it('has one limit for all texts of a value', function()
    local many = compile({ items = { type = 'string', pattern = 'a{0,100}a{0,100}b' } })
    local value = vim.fn['repeat']({ ('a'):rep(90) .. 'b' }, 10000)
    t.eq(false, (in_time(function() return many:check(value) end)))
  end)
end)

describe('a schema that requires too much work', function()
  --- 30 definitions, each of which refers to the next one twice.
  local function doubled(make)
    local defs = { d30 = { type = 'string' } }
    for i = 0, 29 do
      local ref = '#/$defs/d' .. i + 1
      defs['d' .. i] = make({ ['$ref'] = ref }, { ['$ref'] = ref })
    end
    return { type = 'object', properties = { p = { ['$ref'] = '#/$defs/d0' } }, ['$defs'] = defs }
  end

  for _, keyword in ipairs({ 'allOf', 'anyOf', 'oneOf' }) do
    it('refuses the call when references double it 30 times: ' .. keyword, function()
      local validator = compile(doubled(function(a, b) return { [keyword] = { a, b } } end))
      local ok, faults = in_time(function() return validator:check({ p = keyword == 'anyOf' and 1 or 'x' }) end)
      t.eq(false, ok)
      t.matches('is too large', faults[1].message)
    end)
  end

  it('refuses the call when defaults double it', function()
    local validator = compile(doubled(function(a, b)
      a.default, b.default = vim.empty_dict(), vim.empty_dict()
      return { type = 'object', properties = { a = a, b = b } }
    end))
    is_too_large(in_time(validator.fill, validator, { p = vim.empty_dict() }))
  end)

  it('refuses the call when defaults contain each other in every order', function()
    local properties = {}
    for i = 1, 12 do
      properties['p' .. i] = { ['$ref'] = '#', default = vim.empty_dict() }
    end
    local validator = compile({ type = 'object', properties = properties })
    is_too_large(in_time(validator.fill, validator, vim.empty_dict()))
  end)
end)

describe('a definition is refused', function()
  it('when one of its tables occurs twice, 30 times over', function()
    local shared = { type = 'string' }
    for _ = 1, 30 do
      shared = { type = 'object', properties = { a = shared, b = shared } }
    end
    local _, err = in_time(function() return tool(shared) end)
    t.matches('input_schema: has more than 20000 values', err)
    local args = { name = 'x', description = 'd', execute = print, args = { p = shared } }
    local _, again = in_time(function() return definition.normalize(args) end)
    t.matches('args: has more than 20000 values', again)
  end)

  it('when references follow each other 2000 times', function()
    local defs = { d2000 = { type = 'string' } }
    for i = 0, 1999 do
      defs['d' .. i] = { ['$ref'] = '#/$defs/d' .. i + 1 }
    end
    local input_schema = { type = 'object', properties = { p = { ['$ref'] = '#/$defs/d0' } }, ['$defs'] = defs }
    local _, err = in_time(function() return tool(input_schema) end)
    t.matches('more than %d+ references', err)
  end)

  it('when it is deeper than Lua can follow', function()
    local deep = { type = 'string' }
    for _ = 1, 100000 do
      deep = { type = 'array', items = deep }
    end
    deep.type, deep.items = 'object', { items = deep.items }
    local _, err = in_time(function() return tool(deep) end)
    t.matches('is nested more than 96 levels deep', err)
  end)

  it('but not if it is a large usual schema', function()
    local shared = { type = 'object', properties = { x = { type = 'number' }, y = { type = 'number' } } }
    local properties, names = {}, {}
    for i = 1, 50 do
      properties['p' .. i] = { anyOf = { shared, { type = 'array', items = shared }, { ['$ref'] = '#/$defs/d' } } }
      names[i] = 'name ' .. i
    end
    properties.many = { enum = names }
    t.ok(tool({ type = 'object', properties = properties, ['$defs'] = { d = { allOf = { shared, shared } } } }))
  end)
end)
