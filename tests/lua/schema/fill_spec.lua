-- Defaults and nulls: what `fill` puts in and takes out.

local schema = require('mcp-tools.schema')
local t = require('helpers')

local NIL = vim.NIL

---@return mcp-tools.Validator
local function compile(json_schema)
  local validator, faults = schema.compile(json_schema)
  return t.ok(validator, vim.inspect(faults))
end

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

  it('gives defaults to absent properties at every level', function()
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

  it('changes the table it is given, and copies defaults', function()
    local validator = compile(s)
    local value = { must = 'x' }
    t.ok(rawequal(value, validator:fill(value)))
    value.opts.depth = 99
    t.eq(7, validator:fill({ must = 'y' }).opts.depth)
  end)

  it('drops a null that is not allowed and not required, and keeps others', function()
    local validator = compile(s)
    local value = validator:fill({ n = NIL, plain = NIL, maybe = NIL, must = NIL, deep = { x = NIL } })
    t.eq({ n = 3, list = {}, opts = { depth = 7 }, maybe = NIL, must = NIL, deep = { x = false } }, value)
    local _, errors = validator:check(value)
    t.eq({ { field = 'must', message = 'must be string, got null' } }, errors)
  end)

  it('reaches through references and items', function()
    local node = {
      ['$defs'] = {
        node = { type = 'object', properties = { size = { default = 1 }, next = { ['$ref'] = '#/$defs/node' } } },
      },
      properties = { tree = { ['$ref'] = '#/$defs/node' }, list = { items = { ['$ref'] = '#/$defs/node' } } },
    }
    t.eq(
      { tree = { size = 1, next = { size = 1 } }, list = { { size = 1, a = 0 } } },
      compile(node):fill({ tree = { next = vim.empty_dict() }, list = { { a = 0 } } })
    )
  end)

  it('fills other properties', function()
    local validator = compile({
      properties = { a = true },
      additionalProperties = { properties = { m = { default = 2 } } },
    })
    t.eq({ a = { b = 0 }, y = { m = 2, b = 0 } }, validator:fill({ a = { b = 0 }, y = { b = 0 } }))
  end)

  it('leaves values inside unions as they are', function()
    local branch = { type = 'object', properties = { kind = { const = 'b' }, p = { default = 'x' } } }
    local value = { shape = { kind = 'b' } }
    local validator = compile({ properties = { shape = { oneOf = { branch, { type = 'null' } } } } })
    t.eq({ shape = { kind = 'b' } }, validator:fill(value))
    t.ok(validator:check(value))
  end)

  it('ends with a default that is its own parent', function()
    local loop = { type = 'object', properties = { child = { ['$ref'] = '#', default = vim.empty_dict() } } }
    t.ok(#vim.json.encode(compile(loop):fill({})) < 40)
  end)

  it('ends with a value that contains itself', function()
    local value = {}
    value.child = value
    t.eq(1, compile({ properties = { child = { ['$ref'] = '#' }, n = { default = 1 } } }):fill(value).n)
  end)

  it('takes an empty array off the wire for what it is', function()
    local validator = compile({ properties = { o = { type = 'object', properties = { n = { default = 1 } } } } })
    t.eq({ o = { n = 1 } }, validator:fill({ o = {} }))
    t.eq({ o = { n = 1 } }, validator:fill({ o = vim.empty_dict() }, { strict = true }))
    local value = validator:fill({ o = {} }, { strict = true })
    t.eq(nil, next(value.o))
    t.eq(false, (validator:check(value, { strict = true })))
  end)

  it('gives empty defaults the form that their schema says', function()
    local validator = compile({
      ['$defs'] = { o = { type = 'object' } },
      properties = { a = { ['$ref'] = '#/$defs/o', default = {} }, b = { type = 'array', default = {} } },
    })
    local filled = validator:fill(vim.empty_dict(), { strict = true })
    t.ok(validator:check(filled, { strict = true }))
    t.matches('"a":{}', vim.json.encode(filled))
    t.matches('"b":%[%]', vim.json.encode(filled))
  end)

  it('never fills in what its own schema refuses, and says so', function()
    local validator =
      compile({ properties = { a = { type = 'string', default = 5 }, b = { type = 'string', default = NIL } } })
    t.eq({ c = 1 }, validator:fill({ c = 1 }))
    t.eq(
      { 'properties.a.default' },
      vim.tbl_map(function(f)
        return f.field
      end, validator:misfits())
    )
  end)

  it('leaves alone what is no object', function()
    local validator = compile(s)
    for _, value in ipairs({ 5, 'x', false, NIL }) do
      t.eq(value, validator:fill(value))
    end
    t.eq({ 1, 2 }, validator:fill({ 1, 2 }))
  end)
end)
