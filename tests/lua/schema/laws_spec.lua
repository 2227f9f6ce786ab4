-- slow
-- What holds for every schema and value, and what a check may cost.

local schema = require('mcp-tools.schema')
local t = require('helpers')

local NIL = vim.NIL

---@return mcp-tools.Validator
local function compile(json_schema)
  local validator, faults = schema.compile(json_schema)
  return t.ok(validator, vim.inspect(faults))
end

describe('random schemas and values', function()
  local function pick(list)
    return list[math.random(#list)]
  end

  local function random_value(depth)
    local kind = math.random(depth > 0 and 8 or 6)
    if kind == 7 then
      local out = {}
      for i = 1, math.random(0, 3) do
        out[i] = random_value(depth - 1)
      end
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
      function()
        s.type = pick({ 'object', 'object', 'array', 'string', 'integer', 'number', 'boolean', 'null' })
      end,
      function()
        s.default = random_value(1)
      end,
      function()
        s.enum = { random_value(1), random_value(1) }
      end,
      function()
        s.minimum, s.maxLength, s.minItems, s.maxProperties = 3, 2, 1, 1
      end,
      function()
        s.required = { pick({ 'a', 'b' }) }
      end,
    }
    if depth > 0 then
      vim.list_extend(makers, {
        function()
          s.properties = random_properties(depth)
        end,
        function()
          s.items = random_schema(depth - 1)
        end,
        function()
          s[pick({ 'anyOf', 'oneOf', 'allOf' })] = { random_schema(depth - 1), random_schema(depth - 1) }
        end,
        function()
          s.additionalProperties = pick({ false, random_schema(depth - 1) })
        end,
        function()
          s['not'] = random_schema(depth - 1)
        end,
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

  it('keep the laws: reasons for every no, values untouched by the check, fill fills once', function()
    math.randomseed(20)
    for _ = 1, 3000 do
      local s = random_schema(3)
      local before = vim.deepcopy(s)
      local validator = compile(s)
      local value = random_value(3)
      local copy = vim.deepcopy(value)
      local ok, errors = validator:check(value)
      t.eq(copy, value)
      t.eq(ok, errors == nil)
      t.ok(ok or #errors > 0, 'no reason')
      local seen = {}
      for _, e in ipairs(errors or {}) do
        t.ok(not seen[e.field .. e.message], 'twice: ' .. e.field .. e.message)
        seen[e.field .. e.message] = true
      end
      local once = validator:fill(value)
      t.eq(vim.deepcopy(once), validator:fill(once))
      t.eq(before, s)
    end
  end)
end)
