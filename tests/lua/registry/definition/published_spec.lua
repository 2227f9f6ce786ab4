-- What clients see of a definition: the short form as a schema, empty tables, MCP's names.

local definition = require('mcp-tools.registry.definition.tool')
local t = require('helpers')

local NIL = vim.NIL

local function noop() end

local function tool(fields)
  return vim.tbl_extend('force', { name = 'x', description = 'Does x.', execute = noop }, fields or {})
end

---@return mcp-tools.Definition
local function normalize(fields) return t.ok(definition.normalize(tool(fields))) end

--- The published form, decoded from its JSON text.
local function published(fields, prefix)
  return vim.json.decode(vim.json.encode(definition.published(normalize(fields), prefix or 'nvim_')))
end

describe('the short form', function()
  it('becomes a schema: flags become lists at every level', function()
    local schema = published({
      args = {
        n = { type = 'number', description = 'A number', required = true, minimum = 1, ['x-own'] = 'y' },
        d = { type = 'string', required = true, default = 'd', pattern = '^d$' },
        o = {
          type = 'object',
          required = true,
          properties = {
            a = { type = 'string', required = true },
            b = { type = 'string', required = true, default = 'b' },
            c = { type = 'array', items = { type = 'object', properties = { z = { required = true } } } },
          },
        },
        l = { type = 'object', properties = { p = { type = 'string' } }, required = { 'p' } },
        u = {
          anyOf = { { type = 'object', properties = { q = { type = 'string', required = true } } }, { type = 'null' } },
        },
      },
    }).inputSchema
    t.eq({
      type = 'object',
      required = { 'n', 'o' },
      properties = {
        n = { type = 'number', description = 'A number', minimum = 1, ['x-own'] = 'y' },
        d = { type = 'string', default = 'd', pattern = '^d$' },
        o = {
          type = 'object',
          required = { 'a' },
          properties = {
            a = { type = 'string' },
            b = { type = 'string', default = 'b' },
            c = {
              type = 'array',
              items = { type = 'object', required = { 'z' }, properties = { z = vim.empty_dict() } },
            },
          },
        },
        l = { type = 'object', properties = { p = { type = 'string' } }, required = { 'p' } },
        u = {
          anyOf = {
            { type = 'object', properties = { q = { type = 'string' } }, required = { 'q' } },
            { type = 'null' },
          },
        },
      },
    }, schema)
  end)

  it('checks and fills like the schema', function()
    local args = { n = { type = 'integer', required = true }, m = { type = 'integer', default = 2 } }
    local check = normalize({ args = args }).check
    t.eq({ n = 1, m = 2, extra = true }, check:fill({ n = 1, extra = true }))
    t.ok(check:check({ n = 1, extra = true }))
    local _, errors = check:check({})
    t.eq({ { field = 'n', message = 'is required' } }, errors)
  end)

  it(
    'without arguments is an object without properties',
    function() t.eq({ type = 'object', properties = vim.empty_dict() }, published().inputSchema) end
  )
end)

describe('publishing', function()
  local whole = {
    ['$schema'] = 'https://json-schema.org/draft/2020-12/schema',
    ['$id'] = 'urn:example:whole',
    ['$comment'] = 'kept',
    type = 'object',
    ['$defs'] = { leaf = { type = { 'string', 'null' }, examples = { 'a' }, format = 'uri' } },
    properties = {
      a = { ['$ref'] = '#/$defs/leaf' },
      n = { type = 'number', multipleOf = 0.5, exclusiveMinimum = 0, default = 1.5 },
      x = { const = NIL, deprecated = true, ['x-ui'] = { order = 3, tags = { 'b', 'c' } } },
      t = { prefixItems = { { type = 'string' }, true }, items = false, type = 'array' },
    },
    allOf = { { ['if'] = { required = { 'a' } }, ['then'] = { required = { 'n' } }, ['else'] = true } },
    patternProperties = { ['^y-'] = { minLength = 1 } },
    dependentRequired = { a = { 'n' } },
    required = { 'a' },
    additionalProperties = false,
  }

  it('returns a whole schema unchanged', function()
    t.eq(whole, published({ input_schema = whole }).inputSchema)
    t.eq(whole, published({ output_schema = whole }).outputSchema)
  end)

  it('encodes empty tables as objects or lists', function()
    local text = vim.json.encode(definition.published(
      normalize({
        input_schema = {
          type = 'object',
          ['$defs'] = {},
          required = {},
          dependentRequired = {},
          properties = {
            any = {},
            o = { type = 'object', properties = {}, default = {}, required = vim.empty_dict() },
            l = { type = 'array', default = {}, examples = { {} } },
            lo = { type = 'array', items = { type = 'object' }, default = { {} } },
            e = { examples = {} },
            i = { items = {}, ['not'] = { enum = vim.empty_dict() }, additionalProperties = {} },
          },
        },
      }),
      ''
    ))
    local schema = vim.json.decode(text).inputSchema
    local O, L = vim.empty_dict(), {}
    t.eq({ '{}', nil }, { vim.json.encode(schema['$defs']), schema.required })
    t.eq({
      any = O,
      o = { type = 'object', properties = O, default = O },
      l = { type = 'array', items = O, default = L, examples = { L } },
      lo = { type = 'array', items = { type = 'object' }, default = { O } },
      e = { examples = L },
      i = { items = O, ['not'] = { enum = L }, additionalProperties = O },
    }, schema.properties)
    for _, piece in ipairs({
      '"any":{}',
      '"default":[{}]',
      '"examples":[[]]',
      '"examples":[]',
      '"enum":[]',
      '"dependentRequired":{}',
    }) do
      t.ok(text:find(piece, 1, true), piece .. ' is not in ' .. text)
    end
    for _, piece in ipairs({ '"properties":[]', '"items":[]', '"$defs":[]', '"required":', 'null' }) do
      t.ok(not text:find(piece, 1, true), piece .. ' is in ' .. text)
    end
  end)

  it('uses the names of MCP and omits absent fields', function()
    t.eq(
      {
        name = 'nvim_x',
        title = 'The X',
        description = 'Does x.',
        inputSchema = { type = 'object', properties = vim.empty_dict() },
        outputSchema = { type = 'object' },
        annotations = { readOnlyHint = true, destructiveHint = false, idempotentHint = true, openWorldHint = false },
        icons = { { src = 'data:,' } },
        _meta = { ['example/a'] = 1 },
      },
      published({
        title = 'The X',
        output_schema = { type = 'object' },
        annotations = { read_only = true, destructive = false, idempotent = true, open_world = false },
        callers = { mcp = { meta = { ['example/a'] = 1 }, icons = { { src = 'data:,' } } } },
      })
    )
    local keys = vim.tbl_keys(published({
      title = NIL,
      annotations = {},
      output_schema = NIL,
      timeout = NIL,
      callers = { mcp = { meta = {}, icons = {} } },
    }, ''))
    table.sort(keys)
    t.eq({ 'description', 'inputSchema', 'name' }, keys)
  end)
end)
