-- Tool definitions: every fault in one error, lint, what the rest of the plugin gets.

local definition = require('mcp-tools.registry.definition.tool')
local t = require('helpers')

local NIL = vim.NIL

local function noop() end

local function tool(fields)
  return vim.tbl_extend('force', { name = 'x', description = 'Does x.', execute = noop }, fields or {})
end

---@return mcp-tools.Definition
local function normalise(fields)
  local normalised, err = definition.normalise(tool(fields))
  return t.ok(normalised, err)
end

local function faults(def)
  local normalised, err = definition.normalise(def)
  t.eq(nil, normalised)
  return vim.split(err, '\n', { plain = true })
end

describe('faults', function()
  it('come all in one error', function()
    t.eq(
      {
        "tool 'bad': description: is required",
        "tool 'bad': needs_approval: must be a boolean or a function or a string",
        "tool 'bad': state: must be a function",
        "tool 'bad': timeout: must be a number of milliseconds, 0 or more (0 = none)",
        "tool 'bad': title: must be a string",
        "tool 'bad': execute: is required (or run)",
        "tool 'bad': annotations.read_only: must be true or false",
        "tool 'bad': callers.nvim: must be a table",
        "tool 'bad': args.n.type: must be a type (a string) or a list of types",
        "tool 'bad': args.o.properties.deep.enum: must be a list",
        'tool \'bad\': output_schema.type: must be "object" at the top',
      },
      faults({
        name = 'bad',
        title = 5,
        args = { n = { type = 5 }, o = { properties = { deep = { enum = 'a' } } } },
        output_schema = { properties = {} },
        annotations = { read_only = 'yes' },
        timeout = -1,
        needs_approval = 3,
        state = {},
        callers = { nvim = true },
      })
    )
  end)

  it('name the choice between two fields', function()
    t.eq({ "tool 'x': run: cannot be used together with execute" }, faults(tool({ run = noop })))
    t.eq(
      { "tool 'x': input_schema: cannot be used together with args" },
      faults(tool({ args = {}, input_schema = { type = 'object' } }))
    )
  end)

  it('name a definition that is none, and one without a name', function()
    t.eq({ 'tool: must be a table, got string' }, faults('x'))
    t.eq("tool '?': name: is required", faults({ description = 'd', execute = noop })[1])
    t.eq("tool '': name: must not be empty", faults(tool({ name = '' }))[1])
  end)

  it('reach into whole schemas', function()
    t.eq(
      { 'tool \'x\': input_schema.type: must be "object" at the top' },
      faults(tool({ input_schema = { type = 'array' } }))
    )
    t.eq(
      { 'tool \'x\': input_schema.properties.a.$ref: "#/$defs/no" does not exist' },
      faults(tool({ input_schema = { type = 'object', properties = { a = { ['$ref'] = '#/$defs/no' } } } }))
    )
    t.eq(
      { "tool 'x': input_schema.properties.a: must be a schema (a table or a boolean)" },
      faults(tool({ input_schema = { type = 'object', properties = { a = NIL } } }))
    )
    t.matches(
      'unevaluatedProperties: not supported',
      faults(tool({ args = { a = { unevaluatedProperties = false } } }))[1]
    )
  end)

  it('name arguments that are no tables, no names, or no data', function()
    t.eq({
      'tool \'x\': args.a: must be a table such as { type = "string" }',
      'tool \'x\': args.b: must be a table such as { type = "string" }',
    }, faults(tool({ args = { a = 'string', b = 1 } })))
    t.eq({ "tool 'x': args: must map names to tables, not be a list" }, faults(tool({ args = { { name = 'a' } } })))
    local slip = { a = { type = 'string', required = 'yes' } }
    t.eq({ "tool 'x': args.a.required: must be a boolean" }, faults(tool({ args = slip })))
    t.eq({ "tool 'x': args.a.default: is a function, not data" }, faults(tool({ args = { a = { default = noop } } })))
    local loop = { type = 'object' }
    loop.properties = { again = loop }
    t.eq({ "tool 'x': args.a.properties.again: contains itself; use $ref" }, faults(tool({ args = { a = loop } })))
  end)

  it('of what else clients see', function()
    t.eq(
      { "tool 'x': callers.mcp.icons: must be a list" },
      faults(tool({ callers = { mcp = { icons = { src = 'a' } } } }))
    )
    t.eq(
      { "tool 'x': callers.mcp.meta: is a function, not data" },
      vim.tbl_map(function(line)
        return (line:gsub('meta%.?f?', 'meta'))
      end, faults(tool({ callers = { mcp = { meta = { f = noop } } } })))
    )
    t.eq({ "tool 'x': description: is not UTF-8" }, faults(tool({ description = 'a\255' })))
  end)
end)

describe('lint', function()
  it('accepts odd names and unknown fields, and says so', function()
    local odd = normalise({ name = 'my.tool', argz = {}, tags = {}, annotations = { readonly = true, mine = 1 } })
    t.eq({
      'tags: unknown field',
      'name: has characters other than A-Z, a-z, 0-9 and _; some clients rename such tools',
      'annotations.mine: unknown field',
    }, odd.lint)
    t.eq({
      'argz: did you mean args?',
      'annotations.readonly: did you mean read_only?',
    }, odd.typos)
    t.eq({}, normalise({ name = ('a'):rep(40) }).lint)
    t.eq({ 'name: longer than 40 characters' }, normalise({ name = ('a'):rep(41) }).lint)
  end)

  it('names defaults that do not fit', function()
    local normalised = normalise({ args = { n = { type = 'number', default = 'x' } } })
    t.matches('^args%.n%.default: does not match its own schema', normalised.lint[1])
  end)

  it('lists patterns that are not checked by their place in the definition', function()
    local normalised = normalise({ args = { s = { type = 'string', pattern = '\\bx' } } })
    t.eq('args.s.pattern', normalised.unchecked[1].path)
  end)
end)

describe('normalise', function()
  it('keeps what the rest needs', function()
    local function state() end
    local function needs() end
    local callers = { nvim = { pending_message = 'wait' } }
    local normalised = normalise({ timeout = 0, state = state, needs_approval = needs, callers = callers })
    t.eq(
      { 0, state, needs, callers },
      { normalised.timeout, normalised.state, normalised.needs_approval, normalised.callers }
    )
    t.eq({ 'execute', noop }, { normalised.style, normalised.handler })
    local coroutine_style = definition.normalise({ name = 'r', description = 'd', run = noop })
    t.eq({ 'run', noop }, { coroutine_style.style, coroutine_style.handler })
    for _, needs_approval in ipairs({ true, false, 'because' }) do
      t.eq(needs_approval, normalise({ needs_approval = needs_approval }).needs_approval)
    end
    t.eq(nil, normalised.check_output)
    t.ok(normalise({ output_schema = { type = 'object', required = { 'a' } } }).check_output:check({ a = 1 }))
  end)

  it('never changes the definition it is given, nor shares what it publishes', function()
    local def = tool({
      args = { a = { type = 'object', properties = {}, required = true, default = {} }, l = { type = 'array' } },
      output_schema = { type = 'object', properties = {}, required = {} },
      annotations = { read_only = true },
    })
    local before = vim.deepcopy(def)
    local normalised = t.ok(definition.normalise(def))
    local value = normalised.check:fill({})
    value.a.changed = true
    t.eq(before, def)
    t.eq(nil, getmetatable(def.output_schema.properties))
    def.args.a.type = 'string'
    t.eq('object', normalised.input_schema.properties.a.type)
    t.eq(vim.empty_dict(), normalised.input_schema.properties.a.default)
  end)
end)
