-- every Neovim
-- ECMAScript patterns through vim.regex: exact, whatever the person's options and whatever the text holds.

local pattern = require('mcp-tools.schema.pattern')
local t = require('helpers')

local function matches(source, text)
  local compiled, why = pattern.compile(source)
  return t.ok(compiled, source .. ' does not translate: ' .. tostring(why)).matches(text)
end

-- { pattern, texts that match, texts that do not }
local CASES = {
  { '^abc$', { 'abc' }, { 'ABC', 'xabc', 'abc\n', 'abc\nabc', 'abc\0' } },
  { 'b', { 'abc', '\nb', '\0b' }, { 'B', '' } },
  { '', { '', 'x' }, {} },
  { '^\\d{3}-\\d{4}$', { '555-1234' }, { '555-123', '٣٣٣-1234' } },
  { '^\\w+$', { 'a_1Z' }, { 'é', 'a b', '' } },
  { '^\\W$', { 'é', '🐲', '-' }, { 'a', '' } },
  { '^\\s$', { ' ', '\t', '\n', '\194\160', '\239\187\191', '\226\128\168' }, { 'a', '\226\128\139' } },
  { '^[a-z-]+$', { 'a-b' }, { 'A', 'a_b' } },
  { '^[\\w.-]+@[^\\s@]+$', { 'a.b-c@d' }, { 'a b@c', 'a@@' } },
  { '^[^"\\\\]*$', { "it's", '' }, { 'a"b', 'a\\b' } },
  { '^[\\]\\[^-]+$', { '][^-' }, { 'a' } },
  { '[^]', { 'a', '\n' }, { '' } },
  { '^.$', { 'a', 'é', '🐲', '\204\129', '\0' }, { '\n', '\r', '', 'ab', 'e\204\129' } },
  { '^🐲*$', { '', '🐲🐲' }, { '🐉', 'D' } },
  { '^\\uD83D\\uDC32$', { '🐲' }, { '🐉' } },
  { '^\\u{1F432}\\x41\\cA\\0$', { '🐲A\1\0' }, { '🐲A\1' } },
  { '^(a|bc)+$', { 'abca' }, { 'ab', '' } },
  { '^(?<year>\\d{4})(?:-\\d\\d)?$', { '2024', '2024-01' }, { '2024-1' } },
  { '^a{2}b{1,}c{0,2}?$', { 'aab', 'aabbcc' }, { 'ab', 'aabccc' } },
  { '^a{,3}$', { 'a{,3}' }, { 'aa' } },
  { '^(?=.*\\d)(?=.*[a-z])(?!.*\\s).{4,}$', { 'abc1' }, { 'abcd', '1234', 'ab 12', 'a1' } },
  { '^[a-z]{1,255}$', { ('a'):rep(255) }, { ('a'):rep(256), '' } },
  { '^.{2,3000}$', { ('é'):rep(3000), 'ab' }, { ('é'):rep(3001), 'a' } },
  { '^[ -~]+$', { 'all ~ ASCII' }, { 'é', '\n', '\127' } },
  { '^[\\x00-\\x1f]$', { '\0', '\n', '\31' }, { ' ' } },
  { '^[\\u0300-\\u036f]$', { '\204\129' }, { 'e', 'e\204\129' } },
  { '~/[*.]|%$', { '~/*', 'a%' }, { '~/x' } },
}

local UNTRANSLATABLE = {
  '(a)\\1', -- a backreference
  '\\bword\\b', -- word boundaries
  '(?<=a)b', -- a look-behind
  'a(?=b)', -- a look-ahead that is not at the start
  '^(?=a)b|c', -- a look-ahead for one of two choices
  '\\p{Letter}', -- a Unicode property
  '(?i:a)', -- a modifier
  '((a{1,90}){1,90})+', -- too large
  '(a',
  'a)',
  '[a',
  '[b-a]',
  '*a',
  'a{2,1}',
  'a\\',
  '\\Z',
}

describe('pattern', function()
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

  for _, source in ipairs(UNTRANSLATABLE) do
    it(source .. ' is given up, with a reason', function()
      local compiled, why = pattern.compile(source)
      t.eq(nil, compiled)
      t.ok(type(why) == 'string' and why ~= '')
    end)
  end

  it('does not depend on options of the person', function()
    local saved = { vim.o.ignorecase, vim.o.smartcase, vim.o.magic, vim.o.iskeyword, vim.o.regexpengine }
    vim.o.ignorecase, vim.o.magic, vim.o.iskeyword, vim.o.regexpengine = true, false, '@', 1
    local results = { matches('^x[0-9]\\w.$', 'X1_a'), matches('^x[0-9]\\w.$', 'x1_a') }
    vim.o.ignorecase, vim.o.smartcase, vim.o.magic, vim.o.iskeyword, vim.o.regexpengine = unpack(saved)
    t.eq({ false, true }, results)
  end)

  it('answers at once where backtracking would not end', function()
    local started = vim.uv.hrtime()
    t.eq(false, matches('^(a+)+$', ('a'):rep(5000) .. 'b'))
    t.eq(false, matches('^(a|a)*$', ('a'):rep(5000) .. 'b'))
    t.ok((vim.uv.hrtime() - started) / 1e6 < 500)
  end)
end)
