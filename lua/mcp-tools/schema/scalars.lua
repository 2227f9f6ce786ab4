--- Keywords about strings and numbers: `pattern`, `minLength`, `minimum`, `multipleOf` …
---
--- Receives: a schema. Sends: one check for all of these keywords that it has, or nil.
--- Does not know about: other keywords.

local value = require('mcp-tools.schema.value')

--- Rounding of one division and of its two operands, relative.
local EPSILON = 4 * 2 ^ -52
local floor, abs, huge = math.floor, math.abs, math.huge

local function is_multiple(v, divisor)
  local quotient = v / divisor
  if quotient == floor(quotient) and abs(quotient) ~= huge then
    return true
  end
  if abs(quotient) == huge then
    return math.fmod(v, divisor) == 0
  end
  local near = floor(quotient + 0.5)
  -- Whole numbers are exact: there is nothing to be lenient about.
  if v == floor(v) and divisor == floor(divisor) then
    return false
  end
  return abs(quotient - near) <= EPSILON * abs(quotient)
end

local function count(n, what)
  return ('%d %s%s'):format(n, what, n == 1 and '' or 's')
end

---@class mcp-tools.schema.ScalarRule
---@field keyword string
---@field make fun(limit: any, compiler: mcp-tools.schema.Compiler): (fun(v: any): boolean)? nil: cannot be tried
---@field say fun(limit: any): string

--- In the order of their faults.
---@type mcp-tools.schema.ScalarRule[]
local NUMBERS = {
  {
    keyword = 'minimum',
    make = function(limit)
      return function(v)
        return v >= limit
      end
    end,
    say = function(limit)
      return 'must be at least ' .. value.show(limit)
    end,
  },
  {
    keyword = 'maximum',
    make = function(limit)
      return function(v)
        return v <= limit
      end
    end,
    say = function(limit)
      return 'must be at most ' .. value.show(limit)
    end,
  },
  {
    keyword = 'exclusiveMinimum',
    make = function(limit)
      return function(v)
        return v > limit
      end
    end,
    say = function(limit)
      return 'must be more than ' .. value.show(limit)
    end,
  },
  {
    keyword = 'exclusiveMaximum',
    make = function(limit)
      return function(v)
        return v < limit
      end
    end,
    say = function(limit)
      return 'must be less than ' .. value.show(limit)
    end,
  },
  {
    keyword = 'multipleOf',
    make = function(divisor)
      return function(v)
        return is_multiple(v, divisor)
      end
    end,
    say = function(divisor)
      return 'must be a multiple of ' .. value.show(divisor)
    end,
  },
}

---@type mcp-tools.schema.ScalarRule[]
local STRINGS = {
  {
    keyword = 'minLength',
    make = function(limit)
      return function(v)
        -- A character has at most 4 bytes, so most texts need not be counted.
        return #v >= limit and (#v >= 4 * limit or value.length(v) >= limit)
      end
    end,
    say = function(limit)
      return 'must have at least ' .. count(limit, 'character')
    end,
  },
  {
    keyword = 'maxLength',
    make = function(limit)
      return function(v)
        return #v <= limit or (#v <= 4 * limit and value.length(v) <= limit)
      end
    end,
    say = function(limit)
      return 'must have at most ' .. count(limit, 'character')
    end,
  },
  {
    keyword = 'pattern',
    make = function(source, compiler)
      return compiler:matcher(source)
    end,
    say = function(source)
      return 'must match the pattern ' .. source
    end,
  },
}

--- The tests of a schema, and what to say when one fails.
local function collect(compiler, schema, rules)
  local tests, messages = {}, {}
  for i = 1, #rules do
    local rule = rules[i]
    local limit = schema[rule.keyword]
    local test = limit ~= nil and rule.make(limit, compiler)
    if test then
      tests[#tests + 1] = test
      messages[#messages + 1] = function()
        return rule.say(limit)
      end
    end
  end
  return tests, messages
end

---@param compiler mcp-tools.schema.Compiler
---@param schema table
---@return mcp-tools.schema.Check?
return function(compiler, schema)
  local number_tests, number_messages = collect(compiler, schema, NUMBERS)
  local string_tests, string_messages = collect(compiler, schema, STRINGS)
  if #number_tests + #string_tests == 0 then
    return nil
  end
  return function(v, report)
    local tests, messages
    local kind = type(v)
    if kind == 'number' then
      tests, messages = number_tests, number_messages
    elseif kind == 'string' then
      tests, messages = string_tests, string_messages
    else
      return true
    end
    local ok = true
    for i = 1, #tests do
      if not tests[i](v) then
        if not report then
          return false
        end
        report:add(messages[i]())
        ok = false
      end
    end
    return ok
  end
end
