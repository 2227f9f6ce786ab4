-- every Neovim
local t = require('helpers')
local sanitize = require('mcp-tools.util.sanitize')

describe('visible text', function()
  it('is what it was, where nothing hides', function()
    for _, text in ipairs({ '', 'plain <text>', 'é ü ß', '漢字かな', 'עברית', 'עربي', '😀', '' }) do
      t.eq(text, sanitize.line(text))
    end
  end)

  it('names what has no form, turns text around or looks like nothing', function()
    for code, text in pairs({
      ['<U+0000>'] = '\0',
      ['<U+000A>'] = '\n',
      ['<U+001B>'] = '\27',
      ['<U+007F>'] = '\127',
      ['<U+0085>'] = '\194\133',
      ['<U+00A0>'] = '\194\160',
      ['<U+00AD>'] = '\194\173',
      ['<U+061C>'] = '\216\156',
      ['<U+200B>'] = '\226\128\139',
      ['<U+200F>'] = '\226\128\143',
      ['<U+2028>'] = '\226\128\168',
      ['<U+202E>'] = '\226\128\174',
      ['<U+2066>'] = '\226\129\166',
      ['<U+2800>'] = '\226\160\128',
      ['<U+3164>'] = '\227\133\164',
      ['<U+FE0F>'] = '\239\184\143',
      ['<U+FEFF>'] = '\239\187\191',
      ['<U+E0041>'] = '\243\160\129\129',
      ['<FF>'] = '\255',
      ['<C0><80>'] = '\192\128',
      ['<ED><A0><80>'] = '\237\160\128',
    }) do
      t.eq('a' .. code .. 'b', sanitize.line('a' .. text .. 'b'))
    end
  end)

  it('keeps lines and shows the rest', function()
    t.eq({ 'a    b', '', 'c<U+000D>' }, sanitize.lines('a\tb\n\nc\r'))
  end)

  it('comes to an end with many bytes that are not text', function()
    t.eq('string', type(sanitize.line(('\255'):rep(64 * 1024))))
  end)
end)
