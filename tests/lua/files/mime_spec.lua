local mime = require('mcp-tools.files.mime')
local t = require('helpers')

describe('media types', function()
  it('are text or not', function()
    for _, text in ipairs({
      'text/plain',
      'TEXT/HTML; charset=utf-8',
      'application/json',
      'application/vnd.api+json',
      'image/svg+xml',
      'application/x-yaml ;a=b',
      'application/javascript',
    }) do
      t.ok(mime.is_text_mime(text), text)
    end
    for _, other in ipairs({
      'image/png',
      'application/octet-stream',
      'application/jsonx',
      'textual/plain',
      'text/',
      'application/pdf+',
      '',
      'json',
    }) do
      t.ok(not mime.is_text_mime(other), other)
    end
    t.ok(not mime.is_text_mime(nil))
    t.ok(not mime.is_text_mime(5))
  end)

  it('come from the name, unless the bytes say otherwise', function()
    t.eq('image/png', mime.of_file('a/b.PNG', 'x'))
    t.eq('text/plain', mime.of_file('/a.b/c.json'))
    t.eq('text/plain', mime.of_file('Makefile', 'all:\n'))
    t.eq('application/octet-stream', mime.of_file('thing', 'a\0b'))
    t.eq('application/octet-stream', mime.of_file('not-really.lua', '\27LJ\0'))
  end)
end)
