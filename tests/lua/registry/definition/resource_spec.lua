local resource = require('mcp-tools.registry.definition.resource')
local t = require('helpers')

local function read() end

local function normalised(more)
  return assert(resource.normalise(vim.tbl_extend('force', { uri = 'x://y', name = 'y', read = read }, more or {})))
end

describe('a resource definition', function()
  it('needs a URI, a name and a function', function()
    local def = normalised()
    t.eq({ 'x://y', 'y', 'x', 'execute' }, { def.key, def.name, def.scheme, def.style })
    t.eq({ 'description: is missing; a model chooses by it' }, def.lint)
    t.eq({ uri = 'x://y', name = 'y' }, resource.published(def))
  end)

  it('is published in the names of MCP', function()
    local def = normalised({
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
    local def = assert(resource.normalise({
      uri_template = 'x://{id}/{+path}',
      name = 'y',
      run = read,
      complete = { id = read },
      paths = { 'path' },
      description = 'why',
    }))
    t.eq({ 'run', { path = true }, { id = read } }, { def.style, def.paths, def.complete })
    t.eq('x://{id}/{+path}', resource.published(def).uriTemplate)
    t.eq(nil, resource.published(def).uri)
  end)

  it('is refused with every fault at once', function()
    local _, fault = resource.normalise({
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

  it('is refused with each of these', function()
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
      local def, fault =
        resource.normalise(vim.tbl_extend('force', { uri = 'x://y', name = 'y', read = read }, case[1]))
      t.eq(nil, def)
      t.matches(case[2], fault)
    end
    t.matches('must be a table', select(2, resource.normalise('x')))
  end)

  it('is linted for what it has beside', function()
    t.eq({ 'mimetype: did you mean mime_type?' }, normalised({ mimetype = 'a/b', description = 'x' }).typos)
  end)
end)
