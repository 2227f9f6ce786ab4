-- every Neovim
-- Regular expressions as Vim patterns: the same results with any options of the user and any text.

local regex = require('mcp-tools.util.regex')
local t = require('helpers')

local function matches(source, text)
  local translated, why = regex.translate(source, regex.move)
  t.ok(translated, source .. ' is not translated: ' .. tostring(why))
  return vim.regex(translated.vim .. '\\C'):match_str(regex.move(text)) ~= nil
end

-- { pattern, texts that match, texts that do not }
local CASES = {
  { '^abc$', { 'abc' }, { 'ABC', 'xabc', 'abc\n', 'abc\nabc', 'abc\0' } },
  { 'b', { 'abc', '\nb', '\0b' }, { 'B', '' } },
  { '', { '', 'x' }, {} },
  { 'a\\$b\\^c\\\\d~', { 'a$b^c\\d~' }, { 'abcd~' } },
  { '^\\d{3}-\\d{4}$', { '555-1234' }, { '555-123', '٣٣٣-1234' } },
  { '^\\w+$', { 'a_1Z' }, { 'é', 'a b', '' } },
  { '^\\W$', { 'é', '🐲', '-' }, { 'a', '' } },
  { '^\\s$', { ' ', '\t', '\n', '\194\160', '\239\187\191', '\226\128\168' }, { 'a', '\226\128\139' } },
  { '^[a-z-]+$', { 'a-b' }, { 'A', 'a_b' } },
  { '^[a-z]+$', { 'abc' }, { 'abc\nx', 'abc\0x', 'e\204\129', 'ABC' } },
  { '^[\\w.-]+@[^\\s@]+$', { 'a.b-c@d' }, { 'a b@c', 'a@@' } },
  { '^[^"\\\\]*$', { "it's", '' }, { 'a"b', 'a\\b' } },
  { '^[\\]\\[^-]+$', { '][^-' }, { 'a' } },
  { '^[[:alpha:]]$', { ':]', 'a]', '[]' }, { 'b', 'x' } },
  { '[^]', { 'a', '\n' }, { '' } },
  { '^[^a-z]$', { '\n', 'A', 'é', '🐲' }, { 'a' } },
  { '^[\\s\\S]{3}$', { 'a\nb', 'abc' }, { 'ab' } },
  { '^.$', { 'a', 'é', '🐲', '\204\129', '\0' }, { '\n', '\r', '', 'ab', 'e\204\129' } },
  { '^🐲*$', { '', '🐲🐲' }, { '🐉', 'D' } },
  { '^\\u{1F432}\\x41\\0$', { '🐲A\0' }, { '🐲A\1' } },
  { '^(a|bc)+$', { 'abca' }, { 'ab', '' } },
  { '^(?<year>\\d{4})(?:-\\d\\d)?$', { '2024', '2024-01' }, { '2024-1' } },
  { '^a{2}b{1,}c{0,2}?$', { 'aab', 'aabbcc' }, { 'ab', 'aabccc' } },
  { '^a{,3}$', { 'a{,3}' }, { 'aa' } },
  { '^[a-z]{1,255}$', { ('a'):rep(255) }, { ('a'):rep(256), '' } },
  { '^.{2,3000}$', { ('é'):rep(3000), 'ab' }, { ('é'):rep(3001), 'a' } },
  { '^[ -~]+$', { 'all ~ ASCII' }, { 'é', '\n', '\127' } },
  { '^[\\x00-\\x1f]$', { '\0', '\n', '\31' }, { ' ' } },
  { '^[\\u0300-\\u036f]$', { '\204\129' }, { 'e', 'e\204\129' } },
  { '^[\\x20-\\u{10ffff}]+$', { 'é a🐲' }, { '\n' } },
  { '~/[*.]|%$', { '~/*', 'a%' }, { '~/x' } },
}

local UNTRANSLATABLE = [=[
  (a)\1 \bword\b (?<=a)b a(?=b) \p{Letter} (?i:a) ((a{1,90}){1,90})+ (a a) [a [b-a] [] [\D] ^* *a a** a{2,1} a\ \Z
]=]

describe('a regular expression', function()
  for _, case in ipairs(CASES) do
    it(case[1] .. ' matches what it should', function()
      for _, text in ipairs(case[2]) do
        t.ok(matches(case[1], text), vim.inspect(text) .. ' does not match')
      end
      for _, text in ipairs(case[3]) do
        t.ok(not matches(case[1], text), vim.inspect(text) .. ' matches')
      end
    end)
  end

  for source in UNTRANSLATABLE:gmatch('%S+') do
    it(source .. ' is refused with a reason', function()
      local translated, why = regex.translate(source)
      t.eq(nil, translated)
      t.ok(type(why) == 'string' and why ~= '')
    end)
  end

  it('finds its extent in unchanged text', function()
    local translated = t.ok(regex.translate('[é-ü]+?x|a.c'))
    local compiled = vim.regex(translated.vim .. '\\C')
    t.eq({ { 3, 8 }, { 1, 4 } }, { { compiled:match_str('y, éüx') }, { compiled:match_str('ya;c') } })
  end)

  it('does not depend on options of the user', function()
    local saved = { vim.o.ignorecase, vim.o.smartcase, vim.o.magic, vim.o.iskeyword, vim.o.regexpengine }
    vim.o.ignorecase, vim.o.magic, vim.o.iskeyword, vim.o.regexpengine = true, false, '@', 1
    local results = { matches('^x[0-9]\\w.$', 'X1_a'), matches('^x[0-9]\\w.$', 'x1_a') }
    vim.o.ignorecase, vim.o.smartcase, vim.o.magic, vim.o.iskeyword, vim.o.regexpengine = unpack(saved)
    t.eq({ false, true }, results)
  end)

  it('returns immediately where backtracking would not end', function()
    t.eq(false, t.fast(matches, '^(a+)+$', ('a'):rep(5000) .. 'b'))
    t.eq(false, t.fast(matches, '^(a|a)*$', ('a'):rep(5000) .. 'b'))
  end)
end)
