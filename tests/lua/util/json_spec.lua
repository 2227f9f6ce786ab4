-- every Neovim
local canonical_json = require('mcp-tools.util.canonical_json')
local encode = require('mcp-tools.util.json').encode
local t = require('helpers')

--- The text of vim.json; that of 0.10 without its escaped slashes.
local function standard(value) return (vim.json.encode(value):gsub('\\(.)', { ['/'] = '/' })) end

local STRINGS =
  { '', 'name', 'größe', '日本語', 'a"b', 'back\\slash', 'a/b', 'tab\t', '\0', '\127', '\255\254', '\1' }
for length = 62, 66 do
  table.insert(STRINGS, ('x'):rep(length))
  table.insert(STRINGS, ('x'):rep(length - 1) .. '"')
end
local NUMBERS = { 0, -0, 1, -1, 42, 0.5, -2.25, 0.1, 1e13, 1e14 - 1, -(1e14 - 1) }
if vim.fn.has('nvim-0.11') == 1 then -- before, `vim.json` writes 14 digits
  vim.list_extend(NUMBERS, { 1e14, -1e14, 1e15, 2 ^ 53 })
end

--- A random value; the same for the same seed.
local function any(random, depth)
  local kind = random(depth > 5 and 4 or 8)
  if kind == 1 then
    return STRINGS[random(#STRINGS)]
  elseif kind == 2 then
    return random(2) == 1 and NUMBERS[random(#NUMBERS)] or random(-10000, 10000)
  elseif kind == 3 then
    return random(2) == 1
  elseif kind == 4 then
    return vim.NIL
  end
  local value = kind == 8 and vim.empty_dict() or {}
  local strings = random(4) == 1
  for i = 1, random(0, 6) do
    local key = kind <= 6 and i or STRINGS[random(#STRINGS)] .. (random(2) == 1 and random(1000) or '')
    value[key] = strings and STRINGS[random(#STRINGS)] or any(random, depth + 1)
  end
  return value
end

--- Asserts that a text equals that of vim.json, except for the order of keys.
local function same(value, text)
  local expected = standard(value)
  t.eq(#expected, #text)
  t.eq(vim.json.decode(expected), vim.json.decode(text))
end

describe('JSON text', function()
  it('has sorted keys, also of objects whose keys differ from those before', function()
    local list = { { b = 1, a = { d = 1, c = 2 } }, { a = 1, b = 2 }, { c = 1, a = { e = 1, d = 2 } }, {} }
    t.eq('[{"a":{"c":2,"d":1},"b":1},{"a":1,"b":2},{"a":{"d":2,"e":1},"c":1},[]]', encode(list))
  end)

  it('equals that of vim.json, for random values', function()
    math.randomseed(7)
    local written = 0
    for _ = 1, 3000 do
      local value = { any(math.random, 1) }
      local text = encode(value)
      if text then
        written = written + 1
        same(value, text)
      end
    end
    t.eq(true, written > 1500)
  end)

  it('equals that of vim.json for every character, alone and among others', function()
    for code = 0, 255 do
      local char = string.char(code)
      local value = { char, { [char] = char, ['a' .. char .. 'b'] = 'a' .. char .. 'b' }, 1 }
      same(value, encode(value))
    end
  end)

  it('equals that of vim.json when there are more names than the cache has', function()
    for round = 1, 3 do
      local value = {}
      for i = 1, 300 do
        value[('field_%d_%d'):format(i, round)] = i
      end
      same(value, encode(value))
    end
  end)

  it('equals that of vim.json for large values, before and after a small one', function()
    local large = t.list(20000, function(i) return { id = i, text = ('line %d'):format(i) } end)
    for _ = 1, 2 do
      same(large, encode(large))
      t.eq('{"a":1}', encode({ a = 1 }))
    end
  end)

  it('equals that of vim.json around a long string', function()
    for _, length in ipairs({ 32767, 32768, 32769, 2 ^ 20 }) do
      local value = { 1, { text = ('a"'):rep(length / 2), n = { 2 ^ 40 } }, 'end' }
      same(value, encode(value))
      t.eq(nil, encode({ ('x'):rep(length), { print } }))
    end
  end)

  it('distinguishes an empty object from an empty list', function()
    t.eq('[{},[]]', encode({ vim.empty_dict(), {} }))
    t.eq('[[1]]', encode({ setmetatable({ 1 }, {}) }))
  end)
end)

describe('canonical JSON', function()
  it('quotes a long text like a short one, for every character', function()
    local plain = ('x'):rep(1000)
    for byte = 0, 255 do
      local char = string.char(byte)
      local quoted = canonical_json.text(char)
      local long = canonical_json.text(plain .. char .. plain)
      assert(long == '"' .. plain .. quoted:sub(2, -2) .. plain .. '"', ('byte %d: %s'):format(byte, quoted))
    end
    assert(canonical_json.text(plain) == '"' .. plain .. '"')
    assert(canonical_json.text('/\127ü') == '"/\127ü"')
  end)

  it('of a long text is the same in pieces', function()
    local text = ('"/\127é\n'):rep(60000)
    local pauses = 0
    local made = canonical_json.text_of(canonical_json.snapshot({ text }), function() pauses = pauses + 1 end)
    assert(pauses >= 3, pauses)
    assert(made == '["' .. text:gsub('["\n]', { ['"'] = '\\"', ['\n'] = '\\n' }) .. '"]')
  end)

  it('is created partly', function()
    local one = canonical_json.snapshot({ a = ('long "'):rep(200), b = { 1, 2.5, true }, c = 'x' })
    for _, bytes in ipairs({ 1, 10, 50, 1000, 5000 }) do
      assert(canonical_json.head(one, bytes) == canonical_json.text_of(one):sub(1, bytes), bytes)
    end
  end)
end)
