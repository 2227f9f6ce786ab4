-- every Neovim
local t = require('helpers')
local utf8 = require('mcp-tools.util.utf8')

describe('UTF-8 in long text', function()
  it('is judged as in short text, wherever the bad byte stands', function()
    for _, length in ipairs({ 4090, 4095, 4096, 4097, 4099, 9000 }) do
      local text = ('x'):rep(length)
      t.eq(nil, utf8.invalid_at(text))
      t.eq({ text, false }, { utf8.repair(text) })
      for _, place in ipairs({ 1, 2, 3, 4, 5, 1000, length - 3, length - 2, length - 1, length }) do
        local bad = text:sub(1, place - 1) .. '\255' .. text:sub(place + 1)
        t.eq(place, utf8.invalid_at(bad))
        local good = text:sub(1, place - 1) .. 'é' .. text:sub(place)
        t.eq(nil, utf8.invalid_at(good))
        t.eq(#good + 1, utf8.invalid_at(good .. '\192'))
      end
    end
  end)
end)

describe('a text that comes in pieces', function()
  it('is UTF-8 exactly when the whole text is, wherever it is cut', function()
    local texts = {
      'plain',
      'aé€😀z',
      'a\255b',
      'caf\233',
      '\195',
      '\226\130',
      '\240\159\152',
      '\195(',
      'é\128',
      '\237\160\128',
    }
    for _, whole in ipairs(texts) do
      for size = 1, #whole do
        local check = utf8.checker()
        for at = 1, #whole, size do
          check(whole:sub(at, at + size - 1))
        end
        local ok = check('', true)
        t.eq({ whole, size, utf8.invalid_at(whole) == nil }, { whole, size, ok })
      end
    end
  end)
end)
