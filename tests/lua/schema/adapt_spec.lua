-- Arguments that models write in another form than the schema.

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
    ['with the argument names of other tools'] = { { file_path = 'a', glob = 'b' }, { path = 'a', globs = { 'b' } } },
    ['with a pattern'] = { { pattern = 'a+' }, { query = 'a+', regex = true } },
    ['with a pattern that is not a regular expression'] = {
      { pattern = 'a+', regex = false },
      { query = 'a+', regex = false },
    },
    ['as JSON text'] = {
      { edits = '[{"old_string":"a","new_string":"b"}]' },
      { edits = { { old_text = 'a', new_text = 'b' } } },
    },
    ['with one object for a list'] = {
      { edits = { old_text = 'a', lnum = '3' } },
      { edits = { { old_text = 'a', line = 3 } } },
    },
    ['with numbers and booleans as text'] = { { limit = '5', regex = 'true' }, { limit = 5, regex = true } },
    ['with a list as one string'] = { { globs = '["a", "b"]' }, { globs = { 'a', 'b' } } },
    ['with text where text is allowed'] = {
      { query = '["a"]', either = '["a"]' },
      { query = '["a"]', either = '["a"]' },
    },
    ['with values that cannot be converted'] = {
      { limit = 'many', edits = 'x', other = 1 },
      { limit = 'many', edits = 'x', other = 1 },
    },
    ['with both names of an argument'] = { { path = 'a', file = 'b' }, { path = 'a', file = 'b' } },
    ['with a list instead of an object'] = { { 1, 2 }, { 1, 2 } },
  }) do
    it(name .. ' are converted or kept', function() t.eq(case[2], adapted(case[1])) end)
  end

  it('with a query are the symbol where nothing else is searched', function()
    local schema = { properties = { symbol = { type = 'string' } } }
    t.eq({ symbol = 'f' }, adapted({ pattern = 'f' }, schema))
    t.eq({ symbol = 'f' }, adapted({ query = 'f' }, schema))
  end)

  it('with a pattern are globs where files are listed', function()
    local schema = { properties = { path = { type = 'string' }, globs = SCHEMA.properties.globs } }
    t.eq({ globs = { '*.lua' } }, adapted({ pattern = '*.lua' }, schema))
  end)
end)
