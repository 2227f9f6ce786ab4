-- slow
-- The official test suite for draft 2020-12 (tests/data/json-schema-test-suite/SOURCE.md), without unsupported
-- keywords, and properties of every schema and value.

local schema = require('mcp-tools.schema')
local t = require('helpers')

local DATA = t.CHECKOUT .. '/tests/data/json-schema-test-suite/draft2020-12/'

local function read(path)
  local file = assert(io.open(path))
  local text = file:read('*a')
  file:close()
  return vim.json.decode(text)
end

local counts = { checked = 0, refused = 0, unchecked = 0 }

--- Whether a schema is refused only for unsupported keywords.
local function is_refused(faults)
  for _, fault in ipairs(faults) do
    t.matches('not supported', fault.message)
  end
  return #faults > 0
end

local function check_group(group)
  local validator, faults = schema.compile(group.schema)
  if not validator then
    counts.refused = counts.refused + 1
    return t.ok(is_refused(faults))
  end
  local unchecked = #validator.unchecked > 0
  for _, test in ipairs(group.tests) do
    local ok, errors = validator:check(test.data, { strict = true })
    if ok ~= test.valid and not (ok and unchecked) then
      error(('%s: expected %s, got %s %s'):format(test.description, test.valid, ok, vim.inspect(errors)))
    end
    t.eq(ok, errors == nil)
    t.ok(ok or #errors > 0, test.description .. ': refused without a reason')
    validator:check(test.data)
  end
  local key = unchecked and 'unchecked' or 'checked'
  counts[key] = counts[key] + 1
end

describe('JSON-Schema-Test-Suite', function()
  for _, directory in ipairs({ '', 'optional/' }) do
    for name, kind in vim.fs.dir(DATA .. directory) do
      for _, group in ipairs(kind == 'file' and read(DATA .. directory .. name) or {}) do
        it(directory .. name .. ': ' .. group.description, function() check_group(group) end)
      end
    end
  end

  it(
    'is covered except for a few groups',
    function() t.ok(counts.checked > 250 and counts.refused < 20 and counts.unchecked < 15, vim.inspect(counts)) end
  )
end)

local NIL = vim.NIL

---@return mcp-tools.Validator
local function compile(json_schema) return t.ok(schema.compile(json_schema)) end

describe('random schemas and values', function()
  local function pick(list) return list[math.random(#list)] end

  local function random_value(depth)
    local kind = math.random(depth > 0 and 8 or 6)
    if kind == 7 then
      local out = t.list(math.random(0, 3), function() return random_value(depth - 1) end)
      return out
    elseif kind == 8 then
      local out = vim.empty_dict()
      for _ = 1, math.random(0, 3) do
        out[pick({ 'a', 'b', 'c' })] = random_value(depth - 1)
      end
      return out
    end
    return ({ NIL, true, 'text', 3, 2.5, '' })[kind]
  end

  local random_schema
  local function random_properties(depth)
    local out = vim.empty_dict()
    for _ = 1, math.random(0, 3) do
      out[pick({ 'a', 'b', 'c' })] = random_schema(depth - 1)
    end
    return out
  end

  random_schema = function(depth)
    local s = vim.empty_dict()
    local makers = {
      function() s.type = pick({ 'object', 'object', 'array', 'string', 'integer', 'number', 'boolean', 'null' }) end,
      function() s.default = random_value(1) end,
      function() s.enum = { random_value(1), random_value(1) } end,
      function()
        s.minimum, s.maxLength, s.minItems, s.maxProperties = 3, 2, 1, 1
      end,
      function() s.required = { pick({ 'a', 'b' }) } end,
    }
    if depth > 0 then
      vim.list_extend(makers, {
        function() s.properties = random_properties(depth) end,
        function() s.items = random_schema(depth - 1) end,
        function() s[pick({ 'anyOf', 'oneOf', 'allOf' })] = { random_schema(depth - 1), random_schema(depth - 1) } end,
        function() s.additionalProperties = pick({ false, random_schema(depth - 1) }) end,
        function() s['not'] = random_schema(depth - 1) end,
        function()
          s['if'], s['then'] = random_schema(depth - 1), random_schema(depth - 1)
        end,
      })
    end
    for _ = 1, math.random(1, 4) do
      pick(makers)()
    end
    return s
  end

  it('have a reason for every refusal, are not changed by a check, and are filled once', function()
    math.randomseed(20)
    for _ = 1, 3000 do
      local s = random_schema(3)
      local before = vim.deepcopy(s)
      local validator = compile(s)
      local value = random_value(3)
      local copy = vim.deepcopy(value)
      local ok, errors = validator:check(value)
      t.eq({ copy, ok }, { value, errors == nil })
      t.ok(ok or #errors > 0, 'no reason')
      local seen = {}
      for _, e in ipairs(errors or {}) do
        t.ok(not seen[e.field .. e.message], 'twice: ' .. e.field .. e.message)
        seen[e.field .. e.message] = true
      end
      local once = validator:fill(value)
      t.eq({ vim.deepcopy(once), before }, { validator:fill(once), s })
    end
  end)
end)
