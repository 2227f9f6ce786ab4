-- What models write in another form than a schema has.

local t = require('helpers')

local adapt = require('mcp-tools.calls.kinds.tool').adapt

local SCHEMA = {
  type = 'object',
  properties = {
    path = { type = 'string' },
    globs = { type = 'array', items = { type = 'string' } },
    query = { type = 'string' },
    regex = { type = 'boolean' },
    limit = { type = 'integer' },
    either = { type = { 'array', 'string' }, items = { type = 'string' } },
    edits = {
      type = 'array',
      items = {
        type = 'object',
        properties = { old_text = { type = 'string' }, new_text = { type = 'string' }, line = { type = 'integer' } },
      },
    },
  },
}

local function adapted(args, schema)
  adapt(schema or SCHEMA, args)
  return args
end

describe('arguments in another form', function()
  for name, case in pairs({
    ['have the names of other tools'] = { { file_path = 'a', glob = 'b' }, { path = 'a', globs = { 'b' } } },
    ['have a pattern'] = { { pattern = 'a+' }, { query = 'a+', regex = true } },
    ['say that a pattern is none'] = { { pattern = 'a+', regex = false }, { query = 'a+', regex = false } },
    ['are JSON text'] = {
      { edits = '[{"old_string":"a","new_string":"b"}]' },
      { edits = { { old_text = 'a', new_text = 'b' } } },
    },
    ['are one object for a list'] = {
      { edits = { old_text = 'a', lnum = '3' } },
      { edits = { { old_text = 'a', line = 3 } } },
    },
    ['are numbers and booleans as text'] = { { limit = '5', regex = 'true' }, { limit = 5, regex = true } },
    ['are a list of one string'] = { { globs = '["a", "b"]' }, { globs = { 'a', 'b' } } },
    ['keep text where text is allowed'] = {
      { query = '["a"]', either = '["a"]' },
      { query = '["a"]', either = '["a"]' },
    },
    ['keep what fits nothing'] = {
      { limit = 'many', edits = 'x', other = 1 },
      { limit = 'many', edits = 'x', other = 1 },
    },
    ['keep a foreign name beside ours'] = { { path = 'a', file = 'b' }, { path = 'a', file = 'b' } },
    ['keep lists'] = { { 1, 2 }, { 1, 2 } },
  }) do
    it(name, function() t.eq(case[2], adapted(case[1])) end)
  end

  it('mean the symbol where nothing else is searched for', function()
    local schema = { properties = { symbol = { type = 'string' } } }
    t.eq({ symbol = 'f' }, adapted({ pattern = 'f' }, schema))
    t.eq({ symbol = 'f' }, adapted({ query = 'f' }, schema))
  end)

  it('mean globs where files are listed', function()
    local schema = { properties = { path = { type = 'string' }, globs = SCHEMA.properties.globs } }
    t.eq({ globs = { '*.lua' } }, adapted({ pattern = '*.lua' }, schema))
  end)
end)
