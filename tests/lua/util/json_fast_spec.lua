-- every Neovim
local t = require('helpers')

--- The module as it is where nothing is compiled.
local function interpreted()
  local found = package.loaded['mcp-tools.util.json_fast']
  jit.off()
  package.loaded['mcp-tools.util.json_fast'] = nil
  local module = require('mcp-tools.util.json_fast')
  jit.on()
  package.loaded['mcp-tools.util.json_fast'] = found
  return module
end

local variants = { compiled = require('mcp-tools.util.json_fast'), interpreted = interpreted() }

--- What vim.json writes, but that of 0.10 with each escape of a slash undone: those are no part of what is meant.
local function standard(value)
  return (vim.json.encode(value):gsub('\\(.)', { ['/'] = '/' }))
end

local STRINGS =
  { '', 'name', 'größe', '日本語', 'a"b', 'back\\slash', 'a/b', 'tab\t', '\0', '\127', '\255\254', '\1' }
for length = 62, 66 do
  table.insert(STRINGS, ('x'):rep(length))
  table.insert(STRINGS, ('x'):rep(length - 1) .. '"')
end
local NUMBERS = { 0, -0, 1, -1, 42, 0.5, -2.25, 0.1, 1e13, 1e14 - 1, 1e14, -1e14, -(1e14 - 1), 1e15, 2 ^ 53, 2 ^ -24 }

--- Any value that a tool may give; the same for the same seed.
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

for name, compact in vim.spairs(variants) do
  describe('Text of values, ' .. name, function()
    it('is that of vim.json, for whatever there is', function()
      math.randomseed(7)
      local written = 0
      for _ = 1, 3000 do
        local value = { any(math.random, 1) }
        local text = compact.encode(value)
        if text then
          written = written + 1
          t.eq(standard(value), text)
        end
      end
      t.eq(true, written > 1500)
    end)

    it('is that of vim.json for every character, alone and among others', function()
      for code = 0, 255 do
        local char = string.char(code)
        local value = { char, { [char] = char, ['a' .. char .. 'b'] = 'a' .. char .. 'b' }, 1 }
        t.eq(standard(value), compact.encode(value))
      end
    end)

    it('is that of vim.json when there are more names than are kept', function()
      for round = 1, 90 do
        local value = {}
        for i = 1, 300 do
          value[('field_%d_%d'):format(i, round)] = i
        end
        t.eq(standard(value), compact.encode(value))
      end
    end)

    it('is that of vim.json for large values, before and after a small one', function()
      local large = {}
      for i = 1, 20000 do
        large[i] = { id = i, text = ('line %d'):format(i) }
      end
      for _ = 1, 2 do
        t.eq(true, standard(large) == compact.encode(large))
        t.eq('{"a":1}', compact.encode({ a = 1 }))
      end
    end)

    it('is that of vim.json around a long string', function()
      for _, length in ipairs({ 32767, 32768, 32769, 2 ^ 20 }) do
        local value = { 1, { text = ('a"'):rep(length / 2), n = { 2 ^ 40 } }, 'end' }
        t.eq(true, standard(value) == compact.encode(value))
        t.eq(nil, compact.encode({ ('x'):rep(length), { print } }))
      end
    end)

    local cycle = {}
    cycle[1] = cycle
    local deep = {}
    local at = deep
    for _ = 1, 100 do
      at.down = {}
      at = at.down
    end
    local refused = {
      ['a number with too many digits'] = { 0.1 + 0.2 },
      ['a power of two'] = { 2 ^ -24 },
      ['NaN'] = { a = 0 / 0 },
      ['an infinity'] = { 1 / 0 },
      ['a function'] = { a = { print } },
      ['userdata'] = { vim.uv.new_timer() },
      ['a cycle'] = cycle,
      ['101 levels'] = deep,
      ['a mixed table'] = { 1, 2, a = 3 },
      ['a boolean key'] = { [true] = 1 },
      ['many holes'] = { [1] = 1, [1000] = 2 },
    }
    for what, value in vim.spairs(refused) do
      it('is left to others for ' .. what, function()
        t.eq(nil, compact.encode(value))
        t.eq('[1]', compact.encode({ 1 }))
      end)
    end
  end)
end

describe('Text of values, compiled', function()
  it('is left to others for tables that say themselves what they are', function()
    t.eq(nil, variants.compiled.encode({ setmetatable({ 1 }, {}) }))
    t.eq('[{},[]]', variants.compiled.encode({ vim.empty_dict(), {} }))
  end)
end)
