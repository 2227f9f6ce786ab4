-- every Neovim
local pretty = require('mcp-tools.util.json_pretty')
local t = require('helpers')

describe('pretty JSON', function()
  it('has a line for each value, and keys in order', function()
    local want = { '{', '  "a": [', '    1,', '    {},', '    []', '  ],', '  "b": {', '    "c": null', '  }', '}' }
    t.eq(table.concat(want, '\n'), pretty('{"b":{"c":null},"a":[1,{},[]]}'))
    t.eq(table.concat(want, '\n'), pretty(' { "b" : { "c" : null } ,\n"a" : [ 1 , { } , [ ] ] } '))
  end)

  it('changes no scalar', function()
    for _, text in ipairs({ '1763769600123456789', '-0.10e+5', 'true', 'null', '""', [["a\"b\\"]], '[]', '{}' }) do
      t.eq(text, pretty(text))
    end
    t.eq('[\n  "}, {\\"",\n  "\\\\"\n]', pretty([=[["}, {\"","\\"]]=]))
  end)

  it('ends on what is no JSON', function()
    for _, text in ipairs({ '', '{', '[1,', '{"a":', '{"a', '[[', '"\\', '{a}', ']' }) do
      t.eq('string', type(pretty(text)))
    end
  end)
end)
