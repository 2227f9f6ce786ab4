local result = require('mcp-tools.editor.result')
local t = require('helpers')

describe('a page', function()
  it('far behind the end is empty, where numbers are no longer counted one by one', function()
    for _, offset in ipairs({ 2 ^ 53 - 1, 2 ^ 53, 1e300 }) do
      local items, about = result.page({ 'a', 'b' }, { offset = offset, limit = 200 })
      t.eq({ {}, { total = 2 } }, { items, about })
    end
  end)
end)
