-- Definitions of tools, resources and prompts: faults, lint.

local definition = require('mcp-tools.registry.definition.tool')
local prompt = require('mcp-tools.registry.definition.prompt')
local resource = require('mcp-tools.registry.definition.resource')
local t = require('helpers')

local NIL = vim.NIL

local function noop() end

local function tool(fields)
  return vim.tbl_extend('force', { name = 'x', description = 'Does x.', execute = noop }, fields or {})
end

---@return mcp-tools.Definition
local function normalize(fields) return t.ok(definition.normalize(tool(fields))) end

local function faults(def)
  local normalized, err = definition.normalize(def)
  t.eq(nil, normalized)
  return vim.split(err, '\n', { plain = true })
end

describe('faults', function()
  it('are reported in one error', function()
    local expected = {
      "tool 'bad': description: is required",
      "tool 'bad': needs_approval: must be a boolean or a function or a string",
      "tool 'bad': state: must be a function",
      "tool 'bad': timeout: must be a number of milliseconds, 0 or more (0 = none)",
      "tool 'bad': title: must be a string",
      "tool 'bad': execute: is required (or run)",
      "tool 'bad': callers.nvim: must be a table",
      "tool 'bad': annotations.read_only: must be true or false",
      "tool 'bad': args.n.type: must be a type (a string) or a list of types",
      "tool 'bad': args.o.properties.deep.enum: must be a list",
      'tool \'bad\': output_schema.type: must be "object" at the top',
    }
    local bad = { name = 'bad', title = 5, timeout = -1, needs_approval = 3, state = {}, callers = { nvim = true } }
    bad.args = { n = { type = 5 }, o = { properties = { deep = { enum = 'a' } } } }
    bad.output_schema, bad.annotations = { properties = {} }, { read_only = 'yes' }
    t.eq(expected, faults(bad))
  end)

  it('name two fields that cannot be combined', function()
    t.eq({ "tool 'x': run: cannot be used together with execute" }, faults(tool({ run = noop })))
    local both = tool({ args = {}, input_schema = { type = 'object' } })
    t.eq({ "tool 'x': input_schema: cannot be used together with args" }, faults(both))
  end)

  it('name an invalid definition, and one without a name', function()
    t.eq({ 'tool: must be a table, got string' }, faults('x'))
    t.eq("tool '?': name: is required", faults({ description = 'd', execute = noop })[1])
    t.eq("tool '': name: must not be empty", faults(tool({ name = '' }))[1])
  end)

  it('include those of whole schemas', function()
    for message, input_schema in pairs({
      ['input_schema.type: must be "object" at the top'] = { type = 'array' },
      ['input_schema.properties.a.$ref: "#/$defs/no" does not exist'] = {
        type = 'object',
        properties = { a = { ['$ref'] = '#/$defs/no' } },
      },
      ['input_schema.properties.a: must be a schema (a table or a boolean)'] = {
        type = 'object',
        properties = { a = NIL },
      },
    }) do
      t.eq({ "tool 'x': " .. message }, faults(tool({ input_schema = input_schema })))
    end
    local unsupported = tool({ args = { a = { unevaluatedProperties = false } } })
    t.matches('unevaluatedProperties: not supported', faults(unsupported)[1])
  end)

  it('name arguments that are not tables, names or data', function()
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

  it('include other fields for clients', function()
    local icons = tool({ callers = { mcp = { icons = { src = 'a' } } } })
    t.eq({ "tool 'x': callers.mcp.icons: must be a list" }, faults(icons))
    local meta = faults(tool({ callers = { mcp = { meta = { f = noop } } } }))
    t.eq(1, #meta)
    t.matches('callers.mcp.meta.*: is a function, not data', meta[1])
    t.eq({ "tool 'x': description: is not UTF-8" }, faults(tool({ description = 'a\255' })))
  end)
end)

describe('lint', function()
  it('names unknown fields beside a missing one, which may be misspelled', function()
    local _, fault = definition.normalize({ name = 'slip', descripton = 'x', execute = noop })
    t.eq("tool 'slip': description: is required\ntool 'slip': descripton: unknown field", fault)
  end)

  it('reports unusual names and unknown fields', function()
    local odd = normalize({ name = 'my.tool', argz = {}, tags = {}, annotations = { readonly = true, mine = 1 } })
    t.eq({
      'argz: unknown field',
      'tags: unknown field',
      'name: has characters other than A-Z, a-z, 0-9 and _; some clients rename such tools',
      'annotations.mine: unknown field',
      'annotations.readonly: unknown field',
    }, odd.lint)
    t.eq({}, normalize({ name = ('a'):rep(40) }).lint)
    t.eq({ 'name: longer than 40 characters' }, normalize({ name = ('a'):rep(41) }).lint)
  end)

  it('reports defaults that do not match', function()
    local normalized = normalize({ args = { n = { type = 'number', default = 'x' } } })
    t.matches('^args%.n%.default: does not match its own schema', normalized.lint[1])
  end)

  it('lists patterns that are not checked, with their place', function()
    local normalized = normalize({ args = { s = { type = 'string', pattern = '\\bx' } } })
    t.matches('^args%.s%.pattern: the pattern is not checked', normalized.lint[1])
  end)
end)

describe('normalize', function()
  it('keeps the fields of a definition', function()
    local function state() end
    local function needs() end
    local callers = { nvim = { pending_message = 'wait' } }
    local normalized = normalize({ timeout = 0, state = state, needs_approval = needs, callers = callers })
    t.has({ timeout = 0, state = state, needs_approval = needs, callers = callers }, normalized)
    t.eq({ 'execute', noop }, { normalized.style, normalized.handler })
    local coroutine_style = definition.normalize({ name = 'r', description = 'd', run = noop })
    t.eq({ 'run', noop }, { coroutine_style.style, coroutine_style.handler })
    for _, needs_approval in ipairs({ true, false, 'because' }) do
      t.eq(needs_approval, normalize({ needs_approval = needs_approval }).needs_approval)
    end
    t.eq(nil, normalized.check_output)
    t.ok(normalize({ output_schema = { type = 'object', required = { 'a' } } }).check_output:check({ a = 1 }))
  end)

  it('does not change the definition, and shares no table with it', function()
    local def = tool({
      args = { a = { type = 'object', properties = {}, required = true, default = {} }, l = { type = 'array' } },
      output_schema = { type = 'object', properties = {}, required = {} },
      annotations = { read_only = true },
      callers = { mcp = { meta = { a = 1 } } },
    })
    local before = vim.deepcopy(def)
    local normalized = t.ok(definition.normalize(def))
    local value = normalized.check:fill({})
    value.a.changed = true
    t.eq({ before, nil }, { def, (getmetatable(def.output_schema.properties)) })
    def.args.a.type, def.callers.mcp.meta.a = 'string', noop
    t.eq('object', normalized.input_schema.properties.a.type)
    t.eq({ a = 1 }, definition.published(normalized, '')._meta)
    t.eq(vim.empty_dict(), normalized.input_schema.properties.a.default)
  end)
end)

local function read() end

local function normalized(more)
  return assert(resource.normalize(vim.tbl_extend('force', { uri = 'x://y', name = 'y', read = read }, more or {})))
end

describe('a resource definition', function()
  it('needs a URI, a name and a function', function()
    local def = normalized()
    t.eq({ 'x://y', 'y', 'x', 'execute' }, { def.key, def.name, def.scheme, def.style })
    t.eq({ 'description: is missing; a model chooses by it' }, def.lint)
    t.eq({ uri = 'x://y', name = 'y' }, resource.published(def))
  end)

  it('is published with the names of MCP', function()
    local def = normalized({
      title = 'Y',
      description = 'why',
      mime_type = 'text/plain; charset=utf-8',
      tags = { 'a' },
      annotations = { audience = { 'user' }, priority = 0.5, last_modified = '2026-01-01T00:00:00Z' },
      callers = { mcp = { meta = { k = 1 }, icons = { { src = 'data:,' } } } },
    })
    t.eq({
      uri = 'x://y',
      name = 'y',
      title = 'Y',
      description = 'why',
      mimeType = 'text/plain; charset=utf-8',
      annotations = { audience = { 'user' }, priority = 0.5, lastModified = '2026-01-01T00:00:00Z' },
      icons = { { src = 'data:,' } },
      _meta = { k = 1, tags = { 'a' } },
    }, resource.published(def))
    t.eq({}, def.lint)
  end)

  it('may be a template', function()
    local def = assert(resource.normalize({
      uri_template = 'x://{id}/{+path}',
      name = 'y',
      run = read,
      complete = { id = read },
      paths = { 'path' },
      description = 'why',
    }))
    t.eq({ 'run', { path = true }, { id = read } }, { def.style, def.paths, def.complete })
    t.eq({ 'x://{id}/{+path}', nil }, { resource.published(def).uriTemplate, resource.published(def).uri })
  end)

  it('is refused with all faults', function()
    local _, fault = resource.normalize({
      uri = 'x://a b',
      name = '',
      mime_type = 'text',
      tags = 'a',
      annotations = { priority = 2, audience = { 'all' } },
      complete = { id = 1 },
      paths = { 'p' },
      timeout = -1,
      callers = { mcp = { meta = { 1 } }, nvim = 1 },
    })
    for _, line in ipairs({
      "resource 'x://a b': annotations.audience: must be a list",
      "resource 'x://a b': annotations.priority: must be a number from 0 to 1",
      "resource 'x://a b': complete.id: must be a function",
      "resource 'x://a b': callers.mcp.meta: must map",
      "resource 'x://a b': callers.nvim: must be a table",
      "resource 'x://a b': mime_type: must be a media type",
      "resource 'x://a b': name: must not be empty",
      "resource 'x://a b': paths: 'p' is not a variable",
      "resource 'x://a b': read: is required (or run)",
      "resource 'x://a b': tags: must be a list of strings",
      "resource 'x://a b': timeout: must be a number of milliseconds",
      "resource 'x://a b': uri: has characters that must be percent-encoded",
    }) do
      t.matches(vim.pesc(line), fault)
    end
  end)

  it('is refused for each of these', function()
    local cases = {
      { { uri = vim.NIL }, 'uri: is required' },
      { { uri_template = 'x://{a}' }, 'uri_template: cannot be used together with uri' },
      { { uri = vim.NIL, uri_template = 'x://{?a}' }, 'uri_template: .*operators' },
      { { uri = 'no-scheme' }, 'uri: must begin with a scheme' },
      { { uri = 'X://upper' }, 'uri: must begin with a scheme in lower case' },
      { { run = read }, 'run: cannot be used together with read' },
      { { watch = 1 }, 'watch: must be a function' },
      { { description = '\255' }, 'description: is not UTF%-8' },
      { { complete = { a = read } }, 'complete%.a: is not a variable' },
    }
    for _, case in ipairs(cases) do
      local fields = vim.tbl_extend('force', { uri = 'x://y', name = 'y', read = read }, case[1])
      local def, fault = resource.normalize(fields)
      t.eq(nil, def)
      t.matches(case[2], fault)
    end
    t.matches('must be a table', select(2, resource.normalize('x')))
  end)

  it(
    'reports unknown fields',
    function() t.eq({ 'mimetype: unknown field' }, normalized({ mimetype = 'a/b', description = 'x' }).lint) end
  )
end)

local function get() end

local function names(def) return t.field('name', def.args) end

describe('a prompt definition', function()
  it('is published with the names of MCP', function()
    local def = assert(prompt.normalize({
      name = 'p',
      title = 'P',
      description = 'why',
      args = { topic = { description = 'what', required = true, complete = get, title = 'T' } },
      get = get,
    }))
    t.eq({
      name = 'p',
      title = 'P',
      description = 'why',
      arguments = { { name = 'topic', title = 'T', description = 'what', required = true } },
    }, prompt.published(def))
    t.eq({}, def.lint)
    local short = assert(prompt.normalize({ name = 'q', description = 'x', run = get }))
    t.eq({ name = 'q', description = 'x' }, prompt.published(short))
  end)

  it('keeps the order of a list, and sorts a map', function()
    local base = { name = 'p', description = 'x', get = get }
    local listed = vim.tbl_extend('force', base, { args = { { name = 'z' }, { name = 'a', required = true } } })
    t.eq({ 'z', 'a' }, names(assert(prompt.normalize(listed))))
    local mapped = vim.tbl_extend('force', base, { args = { b = {}, z = { required = true }, a = {} } })
    t.eq({ 'z', 'a', 'b' }, names(assert(prompt.normalize(mapped))))
  end)

  it('is refused with all faults', function()
    local _, fault = prompt.normalize({
      name = 'p',
      args = { a = { required = 'yes', complete = 1, description = 5 }, b = 1 },
      timeout = 'x',
    })
    for _, line in ipairs({
      "prompt 'p': description: is required",
      "prompt 'p': args.a.required: must be a boolean",
      "prompt 'p': args.a.complete: must be a function",
      "prompt 'p': args.a.description: must be a string",
      "prompt 'p': args.b: must be a table",
      "prompt 'p': timeout: must be a number",
      "prompt 'p': get: is required (or run)",
    }) do
      t.matches(vim.pesc(line), fault)
    end
    local args = { {}, { name = 'a' }, { name = 'a' } }
    _, fault = prompt.normalize({ name = 'p', description = 'x', get = get, args = args })
    t.matches({ 'args%[1%]%.name: must be a non%-empty string', 'args%[3%]%.name: is a duplicate' }, fault)
  end)

  it('reports names from which clients cannot make a command', function()
    local fields = { name = 'a b', description = 'x', get = get, args = { q = { requird = true } } }
    local def = assert(prompt.normalize(fields))
    t.eq('args.q.requird: unknown field', def.lint[1])
    t.matches('name: has characters', def.lint[2])
  end)
end)
