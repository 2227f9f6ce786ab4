local t = require('helpers')
local uri_template = require('mcp-tools.util.uri_template')

local function compiled(text) return assert(uri_template.compile(text)) end

describe('a template', function()
  it('parses a URI and builds it again', function()
    local cases = {
      { 'nvim://thing/{id}', 'nvim://thing/7', { id = '7' } },
      { 'nvim://thing/{id}/data', 'nvim://thing/a%20b/data', { id = 'a b' } },
      { 'nvim://thing/{a}/{b}', 'nvim://thing/x/y', { a = 'x', b = 'y' } },
      { 'nvim://buffer/{+path}', 'nvim://buffer/lua/a.lua', { path = 'lua/a.lua' } },
      { 'file:///{+path}', 'file:///home/me/a%2520b', { path = 'home/me/a%20b' } },
      { 'x://{+path}/end', 'x://a/b/end', { path = 'a/b' } },
      { 'x://{a}-{b}!', 'x://1-2-3!', { a = '1', b = '2-3' } },
    }
    for _, case in ipairs(cases) do
      t.eq({ case[3], case[2] }, { compiled(case[1]):match(case[2]), (compiled(case[1]):expand(case[3])) })
    end
  end)

  it('encodes what it must, and as little as possible in {+name}', function()
    t.eq('x://a%2Fb%3F%C3%A9', compiled('x://{id}'):expand({ id = 'a/b?é' }))
    t.eq('x://a/b?%C3%A9%25', compiled('x://{+id}'):expand({ id = 'a/b?é%' }))
  end)

  it('does not match another URI', function()
    local template = compiled('nvim://thing/{id}/data')
    for _, uri in ipairs({
      'nvim://thing//data',
      'nvim://thing/a/b/data',
      'nvim://thing/a/data/',
      'nvim://thing/a',
      'Nvim://thing/a/data',
      'xnvim://thing/a/data',
      'nvim://thing/a?b/data',
      'nvim://thing/%/data',
      'nvim://thing/%4/data',
      'nvim://thing/%zz/data',
      '',
    }) do
      t.eq(nil, template:match(uri))
    end
    t.eq(nil, compiled('x://{+path}'):match('x://'))
  end)

  it('decodes once', function() t.eq({ path = '%2e%2e/a' }, compiled('x://{+path}'):match('x://%252e%252e/a')) end)

  it('ends for a URI that could match in many ways', function()
    local template = compiled('x://{a}-{b}-{c}-{d}-{+e}-{+f}!')
    for _ = 1, 20 do
      t.eq(nil, template:match('x://' .. ('-a'):rep(4000)))
    end
  end)

  it('reports invalid templates', function()
    local cases = {
      { 'x://y', 'has no variable' },
      { 'x://{?q}', 'operators other than %+' },
      { 'x://{#q}', 'operators' },
      { 'x://{a,b}', 'one variable' },
      { 'x://{a*}', 'modifiers' },
      { 'x://{a:3}', 'modifiers' },
      { 'x://{}', 'must be a name' },
      { 'x://{a b}', 'must be a name' },
      { 'x://{a', 'unbalanced braces' },
      { 'x://a}', 'unbalanced braces' },
      { 'x://{a}{b}', 'text between' },
      { 'x://{a}/{a}', 'twice' },
      { 'x://é/{a}', 'percent%-encoded' },
      { 'x://%z/{a}', 'percent%-encoded' },
      { 'x:// /{a}', 'percent%-encoded' },
    }
    for _, case in ipairs(cases) do
      local template, fault = uri_template.compile(case[1])
      t.eq(nil, template)
      t.matches(case[2], fault)
    end
  end)
end)
