local position = require('mcp-tools.editor.position')
local result = require('mcp-tools.editor.result')
local t = require('helpers')

it('a page far after the end is empty', function()
  for _, offset in ipairs({ 2 ^ 53 - 1, 2 ^ 53, 1e300 }) do
    local items, about = result.page({ 'a', 'b' }, { offset = offset, limit = 200 })
    t.eq({ {}, { total = 2 } }, { items, about })
  end
end)

it('the beginning of a text has as many characters, whatever they are', function()
  t.eq('abc', position.cut('abc', 3))
  t.eq('ab…', position.cut('abc', 2))
  t.eq('äö…', position.cut('äöü', 2))
  t.eq('äöü', position.cut('äöü', 3))
  t.eq('a\0b…', position.cut('a\0bc', 3))
  t.eq('a\0b', position.cut('a\0b', 3))
  t.eq('', position.cut('', 0))
end)
